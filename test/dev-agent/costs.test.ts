import { expect } from 'chai';
import type { TaskDriver, TaskHandle, TaskOptions } from '../../lib/dev-agent/driver.js';
import { SimulatedDriver } from '../../lib/dev-agent/simulated/simulated-driver.js';
import { FakeClock } from '../support/fake-clock.js';
import { eventually, gate } from '../support/waiting.js';
import { RawAgent, sleeper } from './support/raw-agent.js';

describe('costs that the embedded agent imitates', () => {
  let raw: RawAgent;
  let clock: FakeClock;

  beforeEach(() => {
    clock = new FakeClock();
  });
  afterEach(() => raw.stop());

  const statuses = async (): Promise<string[]> =>
    (await raw.get<{ ClientStatus: string }[]>('/v1/allocations')).map(({ ClientStatus }) => ClientStatus);

  async function placed(count: number): Promise<void> {
    await eventually('the allocations', async () => (await statuses()).length === count);
  }

  it('takes its time to start a task', async () => {
    raw = await RawAgent.start({ driver: 'simulated', clock, startDelayMs: 500 });
    await raw.register(sleeper('2-a'));
    await placed(1);
    await clock.advance(499);
    expect(await statuses()).to.deep.equal(['pending']);
    const [{ TaskStates } = { TaskStates: null }] = await raw.allocations('2-a');
    expect(TaskStates?.['default-task']?.Events.map(({ Type }) => Type)).to.deep.equal([
      'Received',
      'Task Setup',
    ]);
    await clock.advance(10);
    expect(await statuses()).to.deep.equal(['running']);
  });

  it('starts no more tasks at once than it may', async () => {
    raw = await RawAgent.start({ driver: 'simulated', clock, startDelayMs: 1000, maxStarts: 2 });
    for (const id of ['2-a', '2-b', '2-c', '2-d', '2-e']) await raw.register(sleeper(id));
    await placed(5);
    const running: number[] = [];
    for (let second = 0; second < 3; second += 1) {
      await clock.advance(1100);
      running.push((await statuses()).filter((status) => status === 'running').length);
    }
    expect(running).to.deep.equal([2, 4, 5]);
  });

  it('takes its time to open an exec, and gives up when the client leaves', async () => {
    raw = await RawAgent.start({ driver: 'simulated', clock, execDelayMs: 60 });
    await raw.register(sleeper('2-a'));
    await placed(1);
    await clock.advance(10);
    const ID = (await raw.allocations('2-a'))[0]?.ID ?? '';
    const exec = raw.exec(ID, ['echo', 'hi'], { tty: true });
    await exec.opened;
    await eventually('the delay', () => clock.armed > 0);
    await clock.advance(59);
    expect(exec.frames).to.deep.equal([]);
    await clock.advance(1);
    await exec.closed;
    expect(exec.stdout).to.equal('hi\r\n');

    const left = raw.exec(ID, ['echo', 'hi'], { tty: true });
    await left.opened;
    await eventually('the delay', () => clock.armed > 0);
    left.socket.terminate();
    await eventually('the end of the exec', () => raw.agent.openExecs === 0 && clock.armed === 0);
  });

  it('opens no more execs at once than it may', async () => {
    raw = await RawAgent.start({ driver: 'simulated', clock, execDelayMs: 50, maxExecsOpening: 1 });
    await raw.register(sleeper('2-a'));
    await placed(1);
    await clock.advance(10);
    const ID = (await raw.allocations('2-a'))[0]?.ID ?? '';
    const execs = [1, 2, 3].map(() => raw.exec(ID, ['echo', 'hi'], { tty: true }));
    await Promise.all(execs.map(({ opened }) => opened));
    const [first, left, last] = execs;
    await eventually('the delay', () => clock.armed > 0);
    left?.socket.terminate();
    await eventually('the client to be gone', () => raw.agent.openExecs === 2);
    await clock.advance(50);
    await first?.closed;
    expect(last?.frames).to.deep.equal([]);
    await eventually('the next delay', () => clock.armed > 0);
    await clock.advance(50);
    await last?.closed;
    expect(last?.stdout).to.equal('hi\r\n');
  });

  it('lets a task be stopped while it is being started', async () => {
    const started = gate();
    const asked = gate();
    const inner = new SimulatedDriver({ clock });
    let handle: TaskHandle | undefined;
    const slow: TaskDriver = {
      name: 'simulated',
      check: () => inner.check(),
      stop: () => inner.stop(),
      startTask: async (options: TaskOptions) => {
        asked.open();
        await started.promise;
        handle = await inner.startTask(options);
        return handle;
      },
    };
    raw = await RawAgent.start({ driver: slow, clock });
    await raw.register(sleeper('2-a'));
    await asked.promise;
    await raw.purge('2-a');
    started.open();
    await eventually('the end of the allocation', async () => {
      await clock.advance(300);
      return (await statuses())[0] === 'complete';
    });
    expect(await handle?.exited).to.include({ exitCode: 137 });
    const [{ TaskStates } = { TaskStates: null }] = await raw.allocations('2-a');
    expect(TaskStates?.['default-task']?.Events.map(({ Type }) => Type)).not.to.include('Started');
  });
});
