import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { task } from '../support/fake-server.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners, tell, whyGone } from '../support/runners.js';

const one = [anEnvironment({ prewarmingPoolSize: 1 })];

describe('what Nomad says of a used runner', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('does not make it idle again when it is announced again [A1-1]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim } = fixture;
    const runner = await claim();
    await settle();
    const now = nomad.allocationOf(runner.id);
    nomad.index += 2;
    await tell(
      nomad,
      { ...now, clientStatus: 'pending', modifyIndex: nomad.index - 1 },
      { ...now, clientStatus: 'running', modifyIndex: nomad.index },
    );
    expect(whyGone(runner)).to.equal(undefined); // its task tells that it is the same life
    const others = [await claim()];
    await settle();
    others.push(await claim());
    expect(others.map(({ id }) => id)).not.to.include(runner.id);
  });

  it('ends it for its client when Nomad starts it anew, and it is purged, not reused [A1-2]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, manager, statistics } = fixture;
    const runner = await claim();
    const gone: RunnerId[] = [];
    manager.onGone((id) => gone.push(id));
    nomad.restart(runner.id);
    await settle();
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'restarted']);
    expect(gone).to.deep.equal([runner.id]);
    expect((await failureOf(() => manager.get(runner.id))).code).to.equal('RUNNER_GONE');
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    expect(statistics()).to.include({ idleRunners: 1, usedRunners: 0 });
    expect((await claim()).id).not.to.equal(runner.id);
  });

  it('ends it also where the restart is told without a pending state, and where no task is told at all', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 2 })] });
    const { nomad, claim } = fixture;
    const [asked, bare] = [await claim(), await claim()];
    await settle();
    const tasks = { 'default-task': task('running', { restarts: 1 }) };
    nomad.update(nomad.allocationOf(asked.id).id, { tasks });
    nomad.update(nomad.allocationOf(bare.id).id, { clientStatus: 'pending', tasks: undefined });
    await settle();
    expect(whyGone(asked)).to.deep.equal(['RUNNER_GONE', 'restarted']);
    expect(whyGone(bare)).to.deep.equal(['RUNNER_GONE', 'restarted']);
  });

  it('leaves it alone when its own claim is announced', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim } = fixture;
    const runner = await claim();
    await settle();
    await tell(nomad, nomad.allocationOf(runner.id));
    nomad.update(nomad.allocationOf(runner.id).id, {});
    await settle();
    expect(whyGone(runner)).to.equal(undefined);
  });

  for (const [what, change, reason] of [
    ['is stopped', { desiredStatus: 'stop' }, 'allocation-stopped'],
    ['ends', { clientStatus: 'complete' }, 'allocation-stopped'],
    ['fails', { clientStatus: 'failed' }, 'allocation-stopped'],
    ['is lost', { clientStatus: 'lost' }, 'allocation-lost'],
    ['is cut off', { clientStatus: 'unknown' }, 'allocation-lost'],
  ] as const) {
    it(`ends it when its allocation ${what}`, async () => {
      fixture = await startRunners({ environments: one });
      const { nomad, claim } = fixture;
      const runner = await claim();
      nomad.update(nomad.allocationOf(runner.id).id, change);
      await settle();
      expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', reason]);
      expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    });
  }

  it('ends it when its node goes down', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim } = fixture;
    const runner = await claim();
    nomad.setNode('node-1', { status: 'down' });
    await settle();
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'allocation-lost']);
  });

  it('ends it when its allocation is replaced, and when its job is purged [A1-19]', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 2 })] });
    const { nomad, claim } = fixture;
    const [moved, purged] = [await claim(), await claim()];
    nomad.run(nomad.place(moved.id, { previousAllocation: moved.allocationId }).id);
    nomad.evaluate(purged.id, { triggeredBy: 'job-deregister', status: 'pending' });
    await settle();
    expect(whyGone(moved)).to.deep.equal(['RUNNER_GONE', 'allocation-stopped']);
    expect(whyGone(purged)).to.deep.equal(['RUNNER_GONE', 'allocation-stopped']);
  });

  it('says out of memory only with the evidence of Nomad', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 2 })] });
    const { nomad, claim } = fixture;
    const [first, second] = [await claim(), await claim()];
    nomad.restart(first.id, { oomKilled: true });
    nomad.restart(second.id);
    await settle();
    expect(whyGone(first)).to.deep.equal(['RUNNER_GONE', 'out-of-memory']);
    expect(whyGone(second)).to.deep.equal(['RUNNER_GONE', 'restarted']);
  });

  it('tells an execution what happened within a grace, and that it lives otherwise', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 4 })] });
    const { nomad, claim, clock } = fixture;
    const [restarted, killed, gone, alive] = [await claim(), await claim(), await claim(), await claim()];
    const answers = [restarted, killed, gone, alive].map((runner) => runner.whatHappened(500));
    await clock.advance(100);
    nomad.restart(restarted.id);
    nomad.restart(killed.id, { oomKilled: true });
    nomad.purgeJob(gone.id);
    await clock.advance(400);
    expect(await Promise.all(answers)).to.deep.equal(['restarted', 'out-of-memory', 'gone', 'alive']);
    expect(await restarted.whatHappened(500)).to.equal('restarted');
  });

  it('is asked for where no events arrive, before an execution is told that it lives', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, clock } = fixture;
    const runner = await claim();
    nomad.before = ({ op }) => (op === 'subscribe' ? new Promise<void>(() => undefined) : undefined);
    nomad.cut();
    await settle();
    nomad.restart(runner.id);
    const answer = runner.whatHappened(200);
    await clock.advance(200);
    expect(await answer).to.equal('restarted');
  });
});
