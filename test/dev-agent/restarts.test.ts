import { expect } from 'chai';
import { systemRandomness } from '../../lib/base/ids.js';
import { RestartTracker } from '../../lib/dev-agent/client/restarts.js';
import type { RestartPolicy } from '../../lib/dev-agent/state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { eventually } from '../support/waiting.js';
import { RawAgent, sleeper } from './support/raw-agent.js';

const MINUTE = 60e9;
const failed = { exitCode: 1, signal: 0, oomKilled: false };
const succeeded = { exitCode: 0, signal: 0, oomKilled: false };

describe('RestartTracker', () => {
  const policy: RestartPolicy = {
    Attempts: 2,
    Delay: 10e9,
    Interval: 5 * MINUTE,
    Mode: 'fail',
    RenderTemplates: false,
  };
  const noJitter = { ...systemRandomness, random: () => 0 };
  const tracker = (given: Partial<RestartPolicy> = {}, type: 'batch' | 'service' = 'batch'): RestartTracker =>
    new RestartTracker({ ...policy, ...given }, type, noJitter);

  it('restarts as often as the policy allows, then fails in words of its own', () => {
    const one = tracker();
    const restart = { kind: 'restart', delayNs: 10e9, reason: 'Restart within policy' };
    expect(one.decide(failed, 0)).to.deep.equal(restart);
    expect(one.decide(failed, MINUTE)).to.deep.equal(restart);
    expect(one.decide(failed, 2 * MINUTE)).to.deep.equal({
      kind: 'fail',
      reason: 'Exceeded allowed attempts 2 in interval 5m0s and mode is "fail"',
    });
  });

  it('counts anew when the interval is over', () => {
    const one = tracker();
    one.decide(failed, 0);
    one.decide(failed, MINUTE);
    expect(one.decide(failed, 6 * MINUTE).kind).to.equal('restart');
  });

  it('waits for the end of the interval in mode "delay"', () => {
    const one = tracker({ Mode: 'delay', Attempts: 1 });
    one.decide(failed, 0);
    expect(one.decide(failed, MINUTE)).to.deep.equal({
      kind: 'restart',
      delayNs: 4 * MINUTE,
      reason: 'Exceeded allowed attempts, applying a delay',
    });
  });

  it('allows none with no attempts', () => {
    expect(tracker({ Attempts: 0 }).decide(failed, 0)).to.deep.equal({
      kind: 'fail',
      reason: 'Policy allows no restarts',
    });
  });

  it('lets a batch task end with success, but not a service', () => {
    expect(tracker().decide(succeeded, 0)).to.deep.equal({ kind: 'complete' });
    expect(tracker({}, 'service').decide(succeeded, 0).kind).to.equal('restart');
  });

  it('restarts what could not be started, too', () => {
    expect(tracker().decide(undefined, 0).kind).to.equal('restart');
  });

  it('stretches the delay by at most a quarter', () => {
    const one = new RestartTracker(policy, 'batch', { ...systemRandomness, random: () => 1 });
    expect(one.decide(failed, 0)).to.include({ delayNs: 12.5e9 });
  });
});

describe('a group of several tasks', () => {
  it('ends whole when one of them fails', async () => {
    const clock = new FakeClock();
    const raw = await RawAgent.start({ driver: 'simulated', clock });
    const task = (Name: string, command: string, args: string[]): object => ({
      Name,
      Driver: 'docker',
      Config: { command, args },
      Resources: { CPU: 1, MemoryMB: 10 },
    });
    const Tasks = [task('main', 'sleep', ['infinity']), task('side', 'sh', ['-c', 'sleep 5; exit 1'])];
    await raw.register(sleeper('2-two', { Tasks }));
    const status = async (): Promise<string | undefined> => (await raw.allocations('2-two'))[0]?.ClientStatus;
    await eventually('both to run', async () => {
      await clock.advance(10);
      return (await status()) === 'running';
    });
    await clock.advance(5_300);
    expect(await status()).to.equal('failed');
    const [{ TaskStates } = { TaskStates: null }] = await raw.allocations('2-two');
    expect(TaskStates?.['side']).to.include({ State: 'dead', Failed: true });
    expect(TaskStates?.['main']).to.include({ State: 'dead', Failed: false });
    expect(TaskStates?.['main']?.Events.map(({ Type }) => Type)).to.include('Sibling Task Failed');
    await raw.stop();
  });
});
