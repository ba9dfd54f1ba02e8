import { expect } from 'chai';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners, tell, whyGone } from '../support/runners.js';

const one = [anEnvironment({ prewarmingPoolSize: 1 })];

describe('what Nomad says of an idle runner', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('replaces the entry of a lost allocation by that of its replacement, once [A1-3]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, statistics } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const old = nomad.allocationOf(id);
    nomad.update(old.id, { clientStatus: 'lost' });
    await settle();
    expect(statistics()).to.include({ idleRunners: 0, pendingRunners: 1 });
    const next = nomad.place(id, { previousAllocation: old.id });
    nomad.update(old.id, { nextAllocation: next.id });
    nomad.run(next.id);
    await settle();
    expect(statistics()).to.include({ idleRunners: 1, pendingRunners: 0 });
    expect(nomad.runnerJobs(7)).to.deep.equal([id]);
    expect(await claim()).to.include({ id, allocationId: next.id });
  });

  it('does not let the late end of an older allocation touch the newer [A1-4] [B4]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, statistics } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const old = nomad.allocationOf(id);
    const next = nomad.place(id, { previousAllocation: old.id });
    nomad.run(next.id);
    await settle();
    nomad.update(old.id, { clientStatus: 'complete', desiredStatus: 'stop' });
    await settle();
    expect(statistics().idleRunners).to.equal(1);
    const runner = await claim();
    expect(runner).to.include({ id, allocationId: next.id });
    nomad.update(old.id, { clientStatus: 'lost' });
    await settle();
    expect(whyGone(runner)).to.equal(undefined);
  });

  it('decides by the payload, so a first event that says running is as good as any [A1-6] [B6]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, statistics, manager } = fixture;
    nomad.autoStart = false;
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 2 }));
    await settle();
    const id = nomad.runnerJobs(7).at(-1) ?? '';
    nomad.muted = true;
    const { id: allocation } = nomad.place(id);
    nomad.muted = false;
    nomad.run(allocation);
    await settle();
    expect(statistics().idleRunners).to.equal(2);
  });

  it('drops what is not newer than what is known [A1-10]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, manager, statistics } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const running = nomad.allocationOf(id);
    await tell(nomad, { ...running, clientStatus: 'failed', modifyIndex: running.modifyIndex - 1 });
    await tell(nomad, { ...running, clientStatus: 'failed' });
    expect(statistics().idleRunners).to.equal(1);
    const runner = await claim();
    await manager.return(runner.id);
    for (let round = 0; round < 3; round += 1) await tell(nomad, running);
    expect((await claim()).id).not.to.equal(runner.id);
  });

  it('has a purged runner that is told to run purged again, and never takes it in [A1-29]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, manager, statistics } = fixture;
    const runner = await claim();
    await settle();
    const was = nomad.allocationOf(runner.id);
    await manager.return(runner.id);
    const before = nomad.callsOf('purge').length;
    nomad.index += 5;
    await tell(nomad, { ...was, modifyIndex: nomad.index });
    expect(nomad.callsOf('purge').slice(before)).to.deep.equal([runner.id]);
    expect(statistics()).to.include({ idleRunners: 1, usedRunners: 0 });
  });

  it('takes one that is cut off out until it is back, and keeps the copy that survives [A1-30, B21]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, statistics } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const old = nomad.allocationOf(id);
    nomad.update(old.id, { clientStatus: 'unknown' });
    await settle();
    expect(statistics()).to.include({ idleRunners: 0, pendingRunners: 1 });
    expect((await failureOf(claim())).code).to.equal('NO_RUNNER_AVAILABLE');
    const copy = nomad.place(id, { previousAllocation: old.id });
    nomad.run(copy.id);
    nomad.update(old.id, { clientStatus: 'running' });
    nomad.update(copy.id, { desiredStatus: 'stop' });
    nomad.update(copy.id, { clientStatus: 'complete' });
    await settle();
    expect(statistics()).to.include({ idleRunners: 1, pendingRunners: 0 });
    expect(await claim()).to.include({ id, allocationId: old.id });
  });

  it('takes those of a node that is down out, and back in with the node', async () => {
    fixture = await startRunners();
    const { nomad, statistics } = fixture;
    nomad.setNode('node-1', { status: 'disconnected' });
    await settle();
    expect(statistics()).to.include({ idleRunners: 0, pendingRunners: 2 });
    nomad.setNode('node-1', { status: 'ready' });
    await settle();
    expect(statistics()).to.include({ idleRunners: 2, pendingRunners: 0 });
  });

  it('replaces one whose main process ended, or that failed [B5]', async () => {
    fixture = await startRunners();
    const { nomad, claim, statistics, clock } = fixture;
    const [ended = '', failed = ''] = nomad.runnerJobs(7);
    nomad.update(nomad.allocationOf(ended).id, { clientStatus: 'complete' });
    nomad.update(nomad.allocationOf(failed).id, { clientStatus: 'failed' });
    await settle();
    expect((await failureOf(claim())).code).to.equal('NO_RUNNER_AVAILABLE');
    await clock.advance(1_000);
    expect(statistics().idleRunners).to.equal(2);
    expect(nomad.runnerJobs(7)).not.to.include.members([ended]).and.not.to.include.members([failed]);
  });

  it('keeps one that was started anew, idle, with no timer of a life before [A1-22]', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, clock, claim, statistics } = fixture;
    const runner = await claim(2);
    await settle();
    const [idle = ''] = nomad.runnerJobs(7).filter((id) => id !== runner.id);
    await clock.advance(1_000);
    nomad.restart(runner.id);
    nomad.restart(idle);
    await clock.advance(5_000);
    expect(statistics()).to.include({ idleRunners: 1, usedRunners: 0 });
    expect(nomad.runnerJobs(7)).to.deep.equal([idle]);
  });

  it('takes the same evaluation three times, and unknown ones, without harm [A1-24]', async () => {
    fixture = await startRunners();
    const { nomad, statistics, warnings } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const evaluation = nomad.evaluate(id);
    for (let times = 0; times < 3; times += 1) {
      nomad.tell({ topic: 'evaluation', index: evaluation.modifyIndex, evaluation });
      nomad.evaluate('nobody');
      nomad.evaluate('7-00000000-0000-4000-8000-000000000000', { triggeredBy: 'job-deregister' });
    }
    await settle();
    expect(statistics().idleRunners).to.equal(2);
    expect(warnings).to.deep.equal([]);
  });

  it('takes one that somebody else claimed out of the pool at once', async () => {
    fixture = await startRunners({ environments: one });
    const { nomad, claim, statistics } = fixture;
    nomad.autoStart = false;
    const [id = ''] = nomad.runnerJobs(7);
    const job = structuredClone(nomad.jobDocuments.get(id)!);
    Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { used: 'true', timeout: '9' });
    nomad.putJob(job);
    await settle();
    expect(statistics()).to.include({ idleRunners: 0, usedRunners: 1, pendingRunners: 1 });
    expect((await failureOf(claim())).code).to.equal('NO_RUNNER_AVAILABLE');
  });

  it('looks at the job of a runner that it never heard of, and takes it in if it is there', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const { nomad, claim, statistics } = fixture;
    const there = '7-00000000-0000-4000-8000-000000000001';
    const purged = '7-00000000-0000-4000-8000-000000000002';
    nomad.muted = true;
    const template = nomad.jobDocuments.get('template-7')!;
    nomad.putJob({ ...template, ID: there });
    nomad.muted = false;
    nomad.run(nomad.place(there).id);
    nomad.run(nomad.place(purged).id);
    nomad.run(nomad.place('8-00000000-0000-4000-8000-000000000003').id);
    await settle();
    // One more than is wanted, so it is drained again; that it was known shows in its purge.
    const looked = new Set(nomad.callsOf('jobs.get').filter((id) => id.startsWith('7-')));
    expect([...looked]).to.have.members([there, purged]);
    expect(nomad.callsOf('purge')).to.deep.equal([there]);
    expect(statistics().idleRunners).to.equal(0);
    expect((await failureOf(claim())).code).to.equal('NO_RUNNER_AVAILABLE');
  });
});
