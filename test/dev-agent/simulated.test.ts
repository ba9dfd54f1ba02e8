import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import { SimulatedDriver } from '../../lib/dev-agent/simulated/simulated-driver.js';
import { eventually } from '../support/waiting.js';
import { RawAgent, runnerJob, sleeper } from './support/raw-agent.js';

describe('simulated tasks', () => {
  let raw: RawAgent;
  let id: string;

  before(async () => {
    raw = await RawAgent.start({ driver: 'simulated' });
    id = await raw.run(sleeper('6-a'));
  });
  after(() => raw.stop());

  it('answers the built-in programs', async () => {
    const cases: [string[], string, string, number][] = [
      [['echo', 'a', 'b'], 'a b\n', '', 0],
      [['echo', '-n', 'a'], 'a', '', 0],
      [['printf', '%s-%s\\n', 'a', 'b'], 'a-b\n', '', 0],
      [['true'], '', '', 0],
      [['/bin/false'], '', '', 1],
      [['sh', '-c', 'echo out; echo err >&2; exit 3'], 'out\n', 'err\n', 3],
      [['sh', '-c', 'echo \'a;b\' "c d" && false && echo no; exit'], 'a;b c d\n', '', 1],
      [['sh', '-c', 'nonsense'], '', 'sh: 1: nonsense: not found\n', 127],
      [['sh', '-c', 'exit 300'], '', '', 44],
    ];
    for (const [command, stdout, stderr, exitCode] of cases) {
      const exec = await raw.output(id, command);
      expect([exec.stdout, exec.bytes('stderr').toString(), exec.exitCode], command.join(' ')).to.deep.equal([
        stdout,
        stderr,
        exitCode,
      ]);
    }
  });

  it('passes input on, and ends with it', async () => {
    const exec = raw.exec(id, ['cat']);
    await exec.opened;
    exec.type('one');
    await exec.until('one');
    exec.type('two');
    exec.send({ stdin: { close: true } });
    await exec.closed;
    expect([exec.stdout, exec.exitCode]).to.deep.equal(['onetwo', 0]);
  });

  it('behaves as a terminal does', async () => {
    const exec = raw.exec(id, ['cat'], { tty: true });
    await exec.opened;
    exec.type('hello\n');
    await exec.until('hello\r\nhello\r\n');
    exec.send({ stdin: { data: 'BA==' } });
    await exec.closed;
    expect([exec.stdout, exec.exitCode]).to.deep.equal(['hello\r\nhello\r\n', 0]);

    const interrupted = raw.exec(id, ['sleep', '60'], { tty: true });
    await interrupted.opened;
    interrupted.send({ stdin: { data: 'Aw==' } });
    await interrupted.closed;
    expect([interrupted.stdout, interrupted.exitCode]).to.deep.equal(['^C', 130]);
  });

  it('refuses a command that it does not know', async () => {
    const { code, reason } = await raw.exec(id, ['python3']).closed;
    expect([code, reason]).to.deep.equal([
      1011,
      'rpc error: code = Unknown desc = failed to start command: exec: "python3": executable file not found in $PATH',
    ]);
  });

  it('ends execs and tasks that are killed', async () => {
    const exec = raw.exec(id, ['sleep', '60']);
    await exec.opened;
    await eventually('the exec', () => raw.agent.openExecs > 0);
    const other = await raw.run(sleeper('6-b'));
    const cut = raw.exec(other, ['sh', '-c', 'echo x; sleep 60']);
    await cut.until('x');
    await raw.agent.faults.killTask(other);
    await cut.closed;
    expect(cut.exitCode).to.equal(137);
    exec.socket.terminate();
    await exec.closed;
  });

  it('runs a main command that it knows to its end', async () => {
    await raw.register(runnerJob('6-ends', { command: 'sh', args: ['-c', 'exit 0'] }));
    await raw.allocation('6-ends', 'complete');
    await raw.register(runnerJob('6-fails', { command: 'false' }));
    await raw.allocation('6-fails', 'failed');
  });

  it('ends what it runs when it is stopped', async () => {
    const driver = new SimulatedDriver({ clock: systemClock });
    const task = await driver.startTask({
      allocationId: 'a',
      taskName: 't',
      command: ['sleep', '3600'],
      environment: {},
      memoryMaxMb: undefined,
      networkAccess: false,
      allocFolder: '',
    });
    const exec = await task.exec({ command: ['sleep', '3600'], tty: false });
    await driver.stop();
    expect(await exec.exitCode).to.equal(137);
    expect(await task.exited).to.deep.equal({ exitCode: 137, signal: 9, oomKilled: false });
  });

  it('carries thousands of runners', async () => {
    const count = 2000;
    const many = await RawAgent.start({ driver: 'simulated' });
    const queue = Array.from({ length: count }, (_value, at) => `9-${String(at).padStart(5, '0')}`).values();
    await Promise.all(
      Array.from({ length: 32 }, async () => {
        for (const jobId of queue) await many.register(sleeper(jobId));
      }),
    );
    const running = '/v1/allocations?task_states=false&per_page=1&filter=ClientStatus%20==%20running';
    await eventually('the first to run', async () => (await many.get<object[]>(running)).length === 1);
    await eventually('all to run', async () => {
      const pending = running.replace('running', 'pending');
      return (await many.get<object[]>(pending)).length === 0;
    });
    const { body, headers } = await many.request<object[]>('GET', '/v1/jobs?per_page=100&prefix=9-');
    expect(body).to.have.length(100);
    expect(headers.get('x-nomad-nexttoken')).to.equal('default.9-00100');
    expect(await many.get<object[]>('/v1/jobs')).to.have.length(count);
    await many.stop();
  }).timeout(120_000);
});
