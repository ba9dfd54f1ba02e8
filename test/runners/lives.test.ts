import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { reasonOf } from '../../lib/base/abort.js';
import type { IdleRunner } from '../../lib/runners/runner.js';
import { anEnvironment } from '../support/environments.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import type { RunnersFixture } from '../support/runners.js';
import { nomadHidingJobs, startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const one = [anEnvironment({ prewarmingPoolSize: 1 })];
const none = [anEnvironment({ prewarmingPoolSize: 0 })];

/** Listens, and keeps what it was told. */
function hear({ manager }: RunnersFixture): { told: IdleRunner[]; ids: () => RunnerId[]; leave: () => void } {
  const told: IdleRunner[] = [];
  const leave = manager.listen({ ready: (runner) => void told.push(runner) });
  return { told, ids: () => told.map(({ id }) => id), leave };
}

/** Why a life is over: code and reason; undefined while it lasts. */
function endOf({ taskSignal }: IdleRunner): unknown {
  if (!taskSignal.aborted) return undefined;
  const { code, details } = reasonOf(taskSignal);
  return [code, details.reason];
}

describe('listening to the pools', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('tells of each runner that becomes idle, with what it is and where', async () => {
    fixture = await startRunners({ environments: none });
    const { manager, nomad } = fixture;
    const { told } = hear(fixture);
    const environment = anEnvironment({ prewarmingPoolSize: 2 });
    await manager.putEnvironment(environment);
    await settle();
    expect(told.map(({ id }) => id)).to.deep.equal(nomad.runnerJobs(7));
    for (const runner of told) {
      expect(runner.environment).to.deep.equal(environment);
      expect(runner).to.include({ allocationId: nomad.allocationOf(runner.id).id, task: 'default-task' });
      expect(endOf(runner)).to.equal(undefined);
    }
  });

  it('tells a listener that comes late of what is idle, the oldest allocation first', async () => {
    fixture = await startRunners({
      environments: [anEnvironment(), anEnvironment({ id: 8, prewarmingPoolSize: 1 })],
    });
    const { nomad, claim } = fixture;
    const used = await claim();
    await settle();
    const [first, second, third] = nomad.runnerJobs(7);
    const [other] = nomad.runnerJobs(8);
    expect(used.id).to.equal(first);
    expect(hear(fixture).ids()).to.deep.equal([second, other, third]);
  });

  it('tells what a restart of the service finds in order of age too', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 4 })] });
    const { nomad, manager } = fixture;
    const [first = ''] = nomad.runnerJobs(7);
    nomad.run(nomad.place(first, { previousAllocation: nomad.allocationOf(first).id }).id); // the youngest now
    await settle();
    await manager.stop();
    fixture = await startRunners({ nomad, start: false });
    const { ids } = hear(fixture);
    await fixture.manager.start();
    await settle();
    expect(ids()).to.deep.equal([...nomad.runnerJobs(7).slice(1), first]);
  });

  it('tells every listener once, and nobody who has left', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, clock } = fixture;
    const [early, leaving] = [hear(fixture), hear(fixture)];
    const [id = ''] = nomad.runnerJobs(7);
    leaving.leave();
    for (let round = 0; round < 3; round += 1) nomad.update(nomad.allocationOf(id).id, {});
    nomad.cut();
    await clock.advance(300_000); // listed again
    const late = hear(fixture);
    expect(early.told).to.have.length(1);
    expect(late.told).to.deep.equal(early.told);
    nomad.restart(id);
    await settle();
    expect([early, late, leaving].map(({ told }) => told.length)).to.deep.equal([2, 2, 1]);
    // Whoever has left still learns when what it was told of ends.
    expect(leaving.told.map(endOf)).to.deep.equal([['RUNNER_GONE', 'restarted']]);
  });

  it('tells of a runner again when it begins another life: restarted, replaced, back with its node', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad } = fixture;
    const { told } = hear(fixture);
    const [id = ''] = nomad.runnerJobs(7);
    nomad.restart(id);
    nomad.restart(id, { oomKilled: true });
    await settle();
    const old = nomad.allocationOf(id);
    nomad.update(old.id, { clientStatus: 'lost' });
    nomad.run(nomad.place(id, { previousAllocation: old.id }).id);
    await settle();
    nomad.setNode('node-1', { status: 'down' });
    nomad.setNode('node-1', { status: 'ready' });
    await settle();
    expect(told.map((runner) => runner.id)).to.deep.equal([id, id, id, id, id]);
    expect(told.map(endOf)).to.deep.equal([
      ['RUNNER_GONE', 'restarted'],
      ['RUNNER_GONE', 'out-of-memory'],
      ['RUNNER_GONE', 'allocation-lost'],
      ['RUNNER_GONE', 'allocation-lost'],
      undefined,
    ]);
    expect(told.at(-1)?.allocationId).to.equal(nomad.allocationOf(id).id);
  });

  it('notices a restart that is told of in one piece', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, clock } = fixture;
    const { told } = hear(fixture);
    const [id = ''] = nomad.runnerJobs(7);
    nomad.muted = true;
    nomad.restart(id);
    nomad.muted = false;
    await clock.advance(300_000); // a listing finds it running again
    expect(told.map(endOf)).to.deep.equal([['RUNNER_GONE', 'restarted'], undefined]);
  });

  it('goes on with the same life through a claim, until the used runner goes', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, manager } = fixture;
    const { told } = hear(fixture);
    const runner = await claim();
    await settle();
    const [life] = told;
    expect(life?.id).to.equal(runner.id);
    nomad.update(nomad.allocationOf(runner.id).id, {});
    await settle();
    expect(told.map(endOf)).to.deep.equal([undefined, undefined]); // it and its replacement
    let wasFirst = false;
    runner.runnerSignal.addEventListener('abort', () => (wasFirst = !life?.taskSignal.aborted));
    await manager.return(runner.id);
    expect(told.map(endOf)).to.deep.equal([['RUNNER_GONE', 'returned'], undefined]);
    expect(wasFirst, 'who has the runner learns of it first').to.equal(true);
  });

  it('does not tell again of a runner whose claim came to nothing', async () => {
    fixture = await startRunners({ nomad: nomadHidingJobs(), environments: one });
    const { nomad, claim } = fixture;
    const { told } = hear(fixture);
    nomad.before = ({ op, id }) => {
      if (op === 'jobs.get' && id.startsWith('7-')) throw new Error('it cannot be read');
    };
    await claim().catch(() => undefined);
    await settle();
    expect(fixture.statistics().idleRunners).to.equal(1);
    expect(told.map(endOf)).to.deep.equal([undefined]);
  });

  it('tells of one that was taken when the listener came, once it is idle again', async () => {
    fixture = await startRunners({ nomad: nomadHidingJobs(), environments: one });
    const { nomad, claim } = fixture;
    const held = gate();
    nomad.before = async ({ op, id }) => {
      if (op !== 'jobs.get' || !id.startsWith('7-')) return;
      await held.promise;
      throw new Error('it cannot be read');
    };
    const [id] = nomad.runnerJobs(7);
    const claiming = claim().catch(() => undefined);
    await settle();
    const { ids } = hear(fixture);
    expect(ids()).not.to.include(id);
    held.open();
    await claiming;
    expect(ids()).to.include(id);
  });

  it('ends a life at once that is lost while a claim is written', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim } = fixture;
    const { told } = hear(fixture);
    const [id = ''] = nomad.runnerJobs(7);
    const held = gate();
    nomad.after = ({ op, id: of }) => (op === 'register' && of === id ? held.promise : undefined);
    const claiming = claim().catch(() => undefined);
    await settle();
    nomad.restart(id);
    await settle();
    expect(told.find((runner) => runner.id === id)).to.satisfy(
      (life: IdleRunner) => String(endOf(life)) === 'RUNNER_GONE,restarted',
    );
    held.open();
    await claiming;
  });

  for (const [what, change, reason] of [
    ['is stopped', { desiredStatus: 'stop' }, 'allocation-stopped'],
    ['failed', { clientStatus: 'failed' }, 'allocation-stopped'],
    ['is lost', { clientStatus: 'lost' }, 'allocation-lost'],
    ['is cut off', { clientStatus: 'unknown' }, 'allocation-lost'],
  ] as const) {
    it(`ends the life of one whose allocation ${what}`, async () => {
      fixture = await startRunners({ environments: one });
      const { nomad } = fixture;
      const { told } = hear(fixture);
      const [id = ''] = nomad.runnerJobs(7);
      nomad.update(nomad.allocationOf(id).id, change);
      await settle();
      expect(told.map(endOf)).to.deep.equal([['RUNNER_GONE', reason]]);
    });
  }

  it('ends the lives of what is purged by somebody else, drained, or of a deleted environment', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 3 })] });
    const { nomad, manager } = fixture;
    const { told } = hear(fixture);
    nomad.autoStart = false;
    const [purged = ''] = nomad.runnerJobs(7);
    nomad.purgeJob(purged);
    await settle();
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    await settle();
    await manager.deleteEnvironment(anEnvironment().id);
    expect(told.map(endOf)).to.deep.equal([
      ['RUNNER_GONE', 'allocation-stopped'],
      ['RUNNER_GONE', 'environment-deleted'],
      ['RUNNER_GONE', 'allocation-stopped'],
    ]);
  });

  it('says nothing of runners of an old specification, until it is the current one again', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, manager } = fixture;
    const early = hear(fixture);
    const [old] = nomad.runnerJobs(7);
    nomad.autoStart = false;
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1, image: 'new:1' }));
    await settle();
    const late = hear(fixture);
    expect(late.ids()).to.deep.equal([]);
    expect(early.told.map(endOf)).to.deep.equal([undefined]); // it is there yet
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    await settle();
    expect(late.ids()).to.deep.equal([old]);
    expect(early.ids()).to.deep.equal([old]);
  });

  it('ends with the service, and leaves nothing behind', async () => {
    fixture = await startRunners();
    const { manager, nomad, clock, claim } = fixture;
    const { told, leave } = hear(fixture);
    await claim();
    await settle();
    const count = told.length;
    await manager.stop();
    expect(told.map(endOf)).to.deep.equal(told.map(() => ['STOPPED', 'service-stopping']));
    expect(hear(fixture).told).to.deep.equal([]);
    leave();
    const [id = ''] = nomad.runnerJobs(7);
    nomad.restart(id);
    await clock.advance(3_600_000);
    expect(told).to.have.length(count);
    expect(clock.armed).to.equal(0);
    expect(nomad.openStreams).to.equal(0);
  });

  it('lets a listener come before the service has started', async () => {
    const nomad = new FakeNomad();
    await (await startRunners({ nomad })).manager.stop();
    fixture = await startRunners({ nomad, start: false });
    const { ids } = hear(fixture);
    expect(ids()).to.deep.equal([]);
    await fixture.manager.start();
    await settle();
    expect(ids()).to.deep.equal(nomad.runnerJobs(7));
  });
});
