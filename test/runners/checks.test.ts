import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import type { IdleRunner } from '../../lib/runners/runner.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const FAULT = 'a command in a runner answered wrongly: exit code 3';

describe('a check of an idle runner', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  /** Checks every runner that becomes idle from now on, as soon as it is. */
  const checkAll = (isFine: () => boolean): IdleRunner[] => {
    const { manager } = fixture;
    const told: IdleRunner[] = [];
    manager.listen({
      ready: (runner) => {
        told.push(runner);
        queueMicrotask(() => {
          if (isFine()) manager.confirmIdle(runner.id);
          else manager.replaceIdle(runner.id, FAULT);
        });
      },
    });
    return told;
  };

  it('that fails has the runner purged and replaced, and the pool say why until another passes', async () => {
    fixture = await startRunners();
    const { manager, nomad, clock, statistics } = fixture;
    const [bad, good] = nomad.runnerJobs(7) as RunnerId[];
    const told: IdleRunner[] = [];
    manager.listen({ ready: (runner) => void told.push(runner) });
    expect(manager.replaceIdle(bad!, FAULT)).to.equal(true);
    expect(told[0]?.taskSignal.aborted).to.equal(true);
    expect(statistics()).to.include({ state: 'unhealthy', reason: FAULT, failedRunners: 1, idleRunners: 1 });
    await clock.advance(1_000);
    expect(nomad.callsOf('purge')).to.deep.equal([bad]);
    expect(nomad.runnerJobs(7)).to.have.length(2).and.include(good);
    // Full again, by a runner that started as well as the bad one did.
    expect(statistics()).to.include({ state: 'unhealthy', reason: FAULT, failedRunners: 1, idleRunners: 2 });
    manager.confirmIdle(told.at(-1)!.id);
    expect(statistics()).to.include({ state: 'ready', failedRunners: 0, idleRunners: 2 });
    expect(statistics()).not.to.have.property('reason');
  });

  it('changes nothing where the runner is claimed, used, gone or unknown', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 1 })] });
    const { manager, nomad, claim, statistics } = fixture;
    const [id] = nomad.runnerJobs(7) as RunnerId[];
    const held = gate();
    nomad.before = ({ op, id: of }) => (op === 'jobs.get' && of === id ? held.promise : undefined);
    const claiming = claim();
    expect(manager.replaceIdle(id!, FAULT), 'under way').to.equal(false);
    held.open();
    const runner = await claiming;
    expect(manager.replaceIdle(runner.id, FAULT), 'used').to.equal(false);
    expect(manager.get(runner.id).runnerSignal.aborted).to.equal(false);
    await manager.return(runner.id);
    expect(manager.replaceIdle(runner.id, FAULT), 'gone').to.equal(false);
    await settle();
    expect(statistics()).to.include({ state: 'ready', failedRunners: 0, idleRunners: 1 });
    const [next] = nomad.runnerJobs(7) as RunnerId[];
    await manager.stop();
    expect(manager.replaceIdle(next!, FAULT), 'stopped').to.equal(false);
    expect(nomad.callsOf('purge')).to.deep.equal([id]);
  });

  it('of every runner failing makes the pool try with one at a time, and tell so all along', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { manager, nomad, clock, statistics, claim } = fixture;
    let isFine = false;
    checkAll(() => isFine);
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 4 }));
    await settle();
    expect(statistics()).to.include({ idleRunners: 0, failedRunners: 4, reason: FAULT });
    expect((await failureOf(claim())).message).to.contain(FAULT);
    const from = nomad.callsOf('register').length;
    for (let second = 0; second < 300; second += 1) {
      await clock.advance(1_000);
      expect(statistics()).to.include({ state: 'unhealthy', reason: FAULT });
    }
    // After 0.75, 1.5, 3, 6, 12 and then every 22.5 seconds.
    expect(nomad.callsOf('register').length - from).to.be.within(14, 18);
    isFine = true;
    await clock.advance(30_000);
    expect(statistics()).to.include({ state: 'ready', idleRunners: 4, failedRunners: 0 });
  });

  it('ends the doubt after a minute without a wrong answer, should none be told to be right', async () => {
    fixture = await startRunners();
    const { manager, nomad, clock, statistics, claim } = fixture;
    manager.replaceIdle(nomad.runnerJobs(7)[0] as RunnerId, FAULT);
    await clock.advance(59_000);
    expect(statistics()).to.include({ state: 'unhealthy', reason: FAULT, idleRunners: 2 });
    await clock.advance(1_000);
    expect(statistics()).to.include({ state: 'ready', failedRunners: 0 });
    const from = nomad.callsOf('register').filter((id) => id.startsWith('7-')).length;
    await Promise.all([claim(), claim()]);
    await settle();
    // Each claim writes once, and both replacements are registered without a wait.
    expect(nomad.callsOf('register').filter((id) => id.startsWith('7-'))).to.have.length(from + 4);
  });

  it('that passes says nothing of starts that fail', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 1 })] });
    const { manager, nomad, statistics } = fixture;
    const [id] = nomad.runnerJobs(7) as RunnerId[];
    nomad.before = ({ op, id: of }) => {
      if (op === 'register' && of.startsWith('7-')) throw new Error('quota');
    };
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 2 }));
    await settle();
    manager.confirmIdle(id!);
    expect(statistics()).to.include({ state: 'unhealthy', reason: 'quota' });
  });

  it('says nothing against an environment that is another by now', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 1 })] });
    const { manager, nomad, statistics } = fixture;
    const [old] = nomad.runnerJobs(7) as RunnerId[];
    nomad.autoStart = false;
    manager.replaceIdle(old!, FAULT);
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1, image: 'new:1' }));
    await settle();
    expect(statistics()).to.include({ state: 'filling', failedRunners: 0 }).and.not.have.property('reason');
    const [current = ''] = nomad.runnerJobs(7);
    nomad.run(nomad.place(current).id);
    await settle();
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1, image: 'new:2' }));
    await settle();
    expect(manager.replaceIdle(current as RunnerId, FAULT)).to.equal(true);
    expect(statistics()).to.include({ state: 'filling', failedRunners: 0 }).and.not.have.property('reason');
  });
});
