import { expect } from 'chai';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { settle } from '../support/fake-clock.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { FakeNomad } from '../support/fake-nomad.js';
import { task } from '../support/fake-server.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';

/** A Nomad that a service has used and left. */
async function leftBehind(work: (fixture: RunnersFixture) => Promise<void>): Promise<FakeNomad> {
  const fixture = await startRunners();
  await work(fixture);
  await settle();
  await fixture.manager.stop();
  return fixture.nomad;
}

describe('a restart of the service', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('finds idle runners idle and used ones used, under their ids, and doubles nothing', async () => {
    let id = '';
    const nomad = await leftBehind(async ({ claim }) => {
      id = (await claim(60)).id;
    });
    const before = nomad.runnerJobs(7);
    fixture = await startRunners({ nomad, environments: [] });
    const { manager, statistics } = fixture;
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 1, pendingRunners: 0, state: 'ready' });
    expect(nomad.runnerJobs(7)).to.deep.equal(before);
    const runner = manager.get(id);
    expect(runner.allocationId).to.equal(nomad.allocationOf(id).id);
    expect(manager.environments()).to.deep.equal([anEnvironment()]);
    await manager.return(id);
    expect(nomad.jobDocuments.has(id)).to.equal(false);
  });

  it('gives used runners their inactivity timeout in full', async () => {
    let id = '';
    const nomad = await leftBehind(async ({ claim, clock }) => {
      id = (await claim(60)).id;
      await clock.advance(50_000);
    });
    fixture = await startRunners({ nomad, environments: [] });
    const { clock, manager } = fixture;
    await clock.advance(59_000);
    manager.get(id);
    await clock.advance(1_000);
    expect((await failureOf(() => manager.get(id))).code).to.equal('RUNNER_GONE');
  });

  it('ends a claim whose allocation did not outlive the time without a service', async () => {
    const ids: string[] = [];
    const nomad = await leftBehind(async ({ claim }) => {
      ids.push((await claim()).id, (await claim()).id);
    });
    const tasks = { 'default-task': task('pending', { restarts: 1 }) };
    nomad.update(nomad.allocationOf(ids[0]!).id, { clientStatus: 'pending', tasks });
    nomad.update(nomad.allocationOf(ids[1]!).id, { clientStatus: 'failed' });
    fixture = await startRunners({ nomad, environments: [] });
    for (const id of ids) {
      expect((await failureOf(() => fixture.manager.get(id))).code).to.equal('RUNNER_GONE');
      expect(nomad.jobDocuments.has(id)).to.equal(false);
    }
    expect(fixture.statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('reads a handful of lists, one job for each used runner, and none for an idle one', async () => {
    const nomad = await leftBehind(async ({ manager, claim }) => {
      await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 200 }));
      await settle();
      for (let n = 0; n < 50; n += 1) await claim();
    });
    let inFlight = 0;
    let most = 0;
    nomad.before = async ({ op }) => {
      if (op !== 'jobs.get') return;
      inFlight += 1;
      most = Math.max(most, inFlight);
      await settle();
      inFlight -= 1;
    };
    const from = nomad.calls.length;
    fixture = await startRunners({ nomad, environments: [] });
    while (!fixture.manager.ready) await settle();
    const calls = nomad.calls.slice(from);
    const gets = calls.filter(({ op }) => op === 'jobs.get');
    expect(gets).to.have.length(51); // and the template
    expect(calls.length - gets.length).to.equal(5); // jobs twice, allocations, nodes, events
    expect(most).to.be.within(2, 40);
    expect(fixture.statistics()).to.include({ idleRunners: 200, usedRunners: 50 });
  });

  it('registers a dead or missing template again, and keeps its environment [A1-31]', async () => {
    const nomad = await leftBehind(async ({ manager }) => {
      await manager.putEnvironment(anEnvironment({ id: 8, prewarmingPoolSize: 1 }));
    });
    const template = nomad.jobDocuments.get('template-7')!;
    template.Status = 'dead';
    fixture = await startRunners({ nomad, environments: [] });
    await settle();
    const { manager, statistics } = fixture;
    expect(manager.environments().map(({ id }) => id)).to.deep.equal([7, 8]);
    expect(nomad.jobDocuments.get('template-7')).to.include({ Status: 'running', Version: 1 });
    expect(statistics(7).idleRunners).to.equal(2);
  });

  it('takes over the cluster of another tool: its templates, idle and used runners', async () => {
    const nomad = await leftBehind(async ({ claim }) => {
      await claim(60);
    });
    for (const job of nomad.jobDocuments.values()) {
      delete job.Meta;
      delete nomad.metaOf(job.ID).serai;
    }
    const before = nomad.runnerJobs(7);
    fixture = await startRunners({ nomad, environments: [] });
    const { statistics, claim, manager } = fixture;
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 1 });
    expect(nomad.runnerJobs(7)).to.deep.equal(before);
    const runner = await claim();
    expect(before).to.include(runner.id);
    // The same body over it changes nothing; another one makes the runners of the other tool old.
    const same = anEnvironment({ name: undefined });
    expect(await manager.putEnvironment(same)).to.equal('unchanged');
    expect(await manager.putEnvironment(anEnvironment({ name: 'mine' }))).to.equal('replaced');
    await settle();
    const left = nomad.runnerJobs(7).filter((id) => before.includes(id));
    expect(left.every((id) => nomad.metaOf(id).used === 'true')).to.equal(true);
    expect(statistics().idleRunners).to.equal(2);
  });

  it('brings nothing back by the replay of events from before', async () => {
    const nomad = await leftBehind(async ({ manager, claim }) => {
      await manager.putEnvironment(anEnvironment({ id: 8 }));
      const runner = await claim();
      await manager.return(runner.id);
    });
    const replay = nomad.said.splice(0);
    const first = await startRunners({ nomad, environments: [] });
    await first.manager.deleteEnvironment(8 as EnvironmentId);
    await first.manager.stop();
    replay.push(...nomad.said);
    const before = [...nomad.jobDocuments.keys()];
    fixture = await startRunners({ nomad, environments: [] });
    nomad.tell(...replay);
    await settle();
    await fixture.clock.advance(600_000);
    expect(fixture.manager.environments().map(({ id }) => id)).to.deep.equal([7]);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal(before);
    expect(fixture.statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('tells of jobs that it cannot understand, and leaves them and their runners alone', async () => {
    const nomad = await leftBehind(() => Promise.resolve());
    nomad.metaOf('template-7').serai = '{"v":99}';
    nomad.putJob({ ID: 'somebody-elses', Type: 'service' });
    nomad.putJob({ ID: 'template-x' });
    const before = [...nomad.jobDocuments.keys()];
    fixture = await startRunners({ nomad, environments: [] });
    const { manager, warnings, clock } = fixture;
    await clock.advance(600_000);
    expect(manager.environments()).to.deep.equal([]);
    expect(warnings.filter((message) => message.includes('cannot be understood'))).to.have.length(1);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal(before);
  });

  it('replaces idle runners of an old specification that it finds', async () => {
    const nomad = await leftBehind(() => Promise.resolve());
    const old = nomad.runnerJobs(7);
    for (const id of old) Object.assign(nomad.jobDocuments.get(id)?.Meta ?? {}, { serai_spec: 'another' });
    fixture = await startRunners({ nomad, environments: [] });
    await settle();
    expect(fixture.statistics().idleRunners).to.equal(2);
    expect(nomad.runnerJobs(7)).not.to.have.any.members(old);
  });

  it('ends up with as many as are wanted when it comes in the middle of a raise [A1-23] [B15]', async () => {
    const nomad = new FakeNomad();
    const first = await startRunners({ nomad, environments: [anEnvironment({ prewarmingPoolSize: 3 })] });
    nomad.autoStart = false;
    await first.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 6 }));
    await settle();
    await first.manager.stop();
    expect(nomad.runnerJobs(7)).to.have.length(6);
    fixture = await startRunners({ nomad, environments: [] });
    const { statistics, manager } = fixture;
    expect(statistics()).to.include({ idleRunners: 3, pendingRunners: 3 });
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 7 }));
    await settle();
    expect(nomad.runnerJobs(7)).to.have.length(7);
    for (const id of nomad.runnerJobs(7).slice(3)) nomad.run(nomad.place(id).id);
    await settle();
    expect(statistics()).to.include({ idleRunners: 7, pendingRunners: 0 });
  });
});
