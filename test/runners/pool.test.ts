import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('a pool', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('refills the moment a runner is taken, in parallel, and on nobody’s time [A1-34]', async () => {
    fixture = await startRunners();
    const { nomad, claim, statistics } = fixture;
    const pool = new Set(nomad.runnerJobs(7));
    const slow = gate();
    nomad.before = ({ op, id }) => (op === 'register' && !pool.has(id) ? slow.promise : undefined);
    await claim();
    await claim();
    await settle();
    expect(nomad.callsOf('register').filter((id) => id.startsWith('7-') && !pool.has(id))).to.have.length(2);
    expect(statistics()).to.include({ idleRunners: 0, usedRunners: 2, pendingRunners: 2, state: 'filling' });
    slow.open();
    await settle();
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 2, pendingRunners: 0, state: 'ready' });
  });

  it('registers a new runner under an index that says it must not exist', async () => {
    fixture = await startRunners();
    const { nomad } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const job = nomad.jobDocuments.get(id);
    expect(job).to.include({ ID: id, Name: id, Type: 'batch', Version: 0 });
    expect(job?.Meta?.serai_spec).to.equal(anEnvironment().specHash);
    expect(nomad.metaOf(id)).to.include({ used: 'false' }).and.not.have.property('timeout');
  });

  it('counts those that are starting, so a raise makes no surplus [A1-23] [B15]', async () => {
    const nomad = new FakeNomad();
    nomad.autoStart = false;
    fixture = await startRunners({ nomad, environments: [anEnvironment({ prewarmingPoolSize: 3 })] });
    const { manager, statistics } = fixture;
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 6 }));
    await settle();
    expect(nomad.runnerJobs(7)).to.have.length(6);
    nomad.cut(); // a resync in the middle of it
    await fixture.clock.advance(1_000);
    expect(nomad.runnerJobs(7)).to.have.length(6);
    for (const id of nomad.runnerJobs(7)) nomad.run(nomad.place(id).id);
    await settle();
    expect(statistics()).to.include({ idleRunners: 6, pendingRunners: 0 });
  });

  it('drains when its size is lowered: what starts first, then the youngest', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 3 })] });
    const { nomad, manager, statistics } = fixture;
    const idle = nomad.runnerJobs(7);
    nomad.autoStart = false;
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 5 }));
    await settle();
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 2 }));
    await settle();
    expect(nomad.runnerJobs(7)).to.deep.equal(idle.slice(0, 2));
    expect(statistics()).to.include({ idleRunners: 2, pendingRunners: 0, state: 'ready' });
  });

  it('replaces a runner that does not start in time, and waits longer each time [A4-93]', async () => {
    const nomad = new FakeNomad();
    nomad.autoStart = false;
    fixture = await startRunners({ nomad, environments: [anEnvironment({ prewarmingPoolSize: 1 })] });
    const { clock, statistics } = fixture;
    const [first = ''] = nomad.runnerJobs(7);
    nomad.place(first);
    await clock.advance(299_000);
    expect(nomad.runnerJobs(7)).to.deep.equal([first]);
    await clock.advance(2_000);
    const [second = ''] = nomad.runnerJobs(7);
    expect(second).not.to.equal(first);
    expect(nomad.runnerJobs(7)).to.have.length(1);
    expect(statistics()).to.include({ state: 'unhealthy', failedRunners: 1, pendingRunners: 1 });
    expect(statistics().reason).to.contain('did not start within 300 s');
    nomad.run(nomad.place(second).id);
    await settle();
    expect(statistics()).to.include({ state: 'ready', failedRunners: 0, idleRunners: 1 });
    expect(statistics()).not.to.have.property('reason');
  });

  it('backs off to 30 s while runners fail to start, and says why', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { nomad, clock, manager, statistics, claim } = fixture;
    nomad.autoStart = false;
    nomad.after = ({ op, id }) => {
      if (op !== 'register' || !id.startsWith('7-')) return;
      const failed = {
        type: 'Driver Failure',
        message: 'no such image',
        exitCode: undefined,
        oomKilled: false,
      };
      const state = {
        state: 'dead',
        failed: true,
        restarts: 0,
        startedAt: undefined,
        lastRestart: undefined,
      } as const;
      const tasks = { 'default-task': { ...state, events: [failed] } };
      nomad.update(nomad.place(id).id, { clientStatus: 'failed', tasks });
    };
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 4 }));
    await settle();
    expect(statistics()).to.include({ state: 'unhealthy', failedRunners: 4 });
    expect(statistics().reason).to.equal('Driver Failure: no such image');
    expect((await failureOf(claim())).message).to.contain('no such image');
    const from = nomad.callsOf('register').length;
    await clock.advance(300_000);
    // One probe at a time: after 0.75, 1.5, 3, 6, 12 and then every 22.5 seconds.
    expect(nomad.callsOf('register').length - from).to.be.within(14, 18);
    nomad.after = () => undefined;
    nomad.autoStart = true;
    await clock.advance(30_000);
    expect(statistics()).to.include({ state: 'ready', idleRunners: 4, failedRunners: 0 });
  });

  it('tells what Nomad lacks when it cannot place a runner, and fills when there is room', async () => {
    const nomad = new FakeNomad();
    nomad.capacity = 2; // the template and one runner
    fixture = await startRunners({ nomad });
    const { statistics } = fixture;
    expect(statistics()).to.include({
      state: 'unhealthy',
      idleRunners: 1,
      pendingRunners: 1,
      failedRunners: 0,
    });
    expect(statistics().reason).to.contain('memory');
    const blocked = nomad.runnerJobs(7).at(-1) ?? '';
    nomad.run(nomad.place(blocked).id);
    await settle();
    expect(statistics()).to.include({ state: 'ready', idleRunners: 2 });
    expect(statistics()).not.to.have.property('reason');
  });

  it('takes an evaluation that ended before the registration was answered, or that fails later [A1-25] [A1-26]', async () => {
    const nomad = new FakeNomad();
    nomad.autoStart = false;
    fixture = await startRunners({ nomad, environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { statistics, manager, clock } = fixture;
    nomad.before = ({ op, id }) => {
      if (op === 'register' && id.startsWith('7-'))
        nomad.evaluate(id, { status: 'failed', nextEvaluation: 'next' });
    };
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    await settle();
    expect(statistics()).to.include({ pendingRunners: 1, state: 'unhealthy' });
    nomad.before = () => undefined;
    // No word comes any more; the limit of a start holds all the same.
    await clock.advance(302_000);
    expect(nomad.callsOf('purge')).to.have.length(1);
    expect(nomad.runnerJobs(7)).to.have.length(1);
  });

  it('purges a registration of which nobody knows whether it got through, and tries under another name', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { nomad, manager, clock, statistics } = fixture;
    nomad.after = ({ op, id }) => {
      if (op === 'register' && id.startsWith('7-')) throw new ServiceError('NOMAD_UNREACHABLE', 'cut off');
    };
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 2 }));
    await settle();
    expect(nomad.callsOf('purge')).to.have.length(2);
    expect(nomad.runnerJobs(7)).to.deep.equal([]);
    expect(statistics()).to.include({ idleRunners: 0, state: 'unhealthy', reason: 'cut off' });
    nomad.after = () => undefined;
    await clock.advance(2_000);
    expect(statistics()).to.include({ idleRunners: 2, state: 'ready' });
  });

  it('does not let a purge overtake the registration that it is to undo', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { nomad, manager } = fixture;
    const held = gate();
    nomad.before = ({ op, id }) => (op === 'register' && id.startsWith('7-') ? held.promise : undefined);
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    await settle();
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 0 }));
    await settle();
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    held.open();
    await settle();
    expect(nomad.callsOf('purge')).to.have.length(1);
    expect(nomad.runnerJobs(7)).to.deep.equal([]);
  });

  it('fills up again after claims and returns without end, and keeps nothing of them [A1-32]', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim, clock, statistics } = fixture;
    const timers = clock.armed;
    for (let n = 0; n < 200; n += 1) {
      const runner = await claim(60);
      runner.beginActivity()();
      await manager.return(runner.id);
      await settle();
    }
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 0, pendingRunners: 0 });
    expect(nomad.runnerJobs(7)).to.have.length(2);
    expect(clock.armed).to.be.at.most(timers + 1);
  });
});
