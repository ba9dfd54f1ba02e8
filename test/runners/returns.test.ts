import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('returning a runner', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('resolves once Nomad purged its job; the second time it is gone', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim } = fixture;
    const runner = await claim();
    const held = gate();
    nomad.before = ({ op }) => (op === 'purge' ? held.promise : undefined);
    let isDone = false;
    const returning = manager.return(runner.id).then(() => (isDone = true));
    await settle();
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'returned');
    expect((await failureOf(() => manager.get(runner.id))).code).to.equal('RUNNER_GONE');
    expect(isDone).to.equal(false);
    held.open();
    await returning;
    expect((await failureOf(manager.return(runner.id))).code).to.equal('RUNNER_GONE');
  });

  it('is refused for whatever is not in use: unknown ids, idle runners, nonsense', async () => {
    fixture = await startRunners();
    const { nomad, manager } = fixture;
    const [idle = ''] = nomad.runnerJobs(7);
    for (const id of [idle, '7-00000000-0000-4000-8000-000000000000', 'template-7', '', '../7']) {
      expect((await failureOf(manager.return(id))).code, id).to.equal('RUNNER_GONE');
      expect((await failureOf(() => manager.get(id))).code, id).to.equal('RUNNER_GONE');
    }
    expect(nomad.callsOf('purge')).to.deep.equal([]);
  });

  it('that Nomad did not confirm is told as such, then as done once, then the runner is gone', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim, clock } = fixture;
    const runner = await claim();
    await settle();
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_OVERLOADED', 'no leader');
    };
    expect((await failureOf(manager.return(runner.id))).code).to.equal('NOMAD_UNREACHABLE');
    expect((await failureOf(() => manager.get(runner.id))).code).to.equal('RUNNER_GONE');
    expect((await failureOf(manager.return(runner.id))).code).to.equal('NOMAD_UNREACHABLE');
    nomad.before = () => undefined;
    await clock.advance(30_000); // confirmed in the background
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    await manager.return(runner.id);
    expect((await failureOf(manager.return(runner.id))).code).to.equal('RUNNER_GONE');
  });

  it('tries at once when the client asks again', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim } = fixture;
    const runner = await claim();
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    await failureOf(manager.return(runner.id));
    nomad.before = () => undefined;
    await manager.return(runner.id);
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
  });

  it('is tried on for as long as Nomad is away, with growing pauses, whatever ended the runner', async () => {
    fixture = await startRunners();
    const { nomad, claim, clock, warnings } = fixture;
    const runner = await claim();
    await settle();
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    runner.abandon('not-killable');
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'not-killable');
    await clock.advance(120_000);
    expect(nomad.callsOf('purge')).to.have.length.within(8, 12);
    expect(warnings.filter((message) => message.includes('could not be removed'))).to.have.length(1);
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    expect(fixture.statistics()).to.include({ usedRunners: 0, idleRunners: 2 });
  });

  it('succeeds where the job was purged behind its back [A1-36]', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim } = fixture;
    const runner = await claim();
    nomad.muted = true;
    nomad.purgeJob(runner.id);
    nomad.muted = false;
    await manager.return(runner.id);
  });
});

describe('a claim', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('ends when it was not used for as long as was asked for', async () => {
    fixture = await startRunners();
    const { nomad, clock, claim, statistics } = fixture;
    const runner = await claim(2);
    await clock.advance(1_999);
    expect(runner.runnerSignal.aborted).to.equal(false);
    await clock.advance(1);
    expect(runner.runnerSignal.reason).to.have.property('code', 'RUNNER_GONE');
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'inactive');
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('rests its timer while anything is in progress, and begins it anew at each end [A1-22] [A2-69]', async () => {
    fixture = await startRunners();
    const { clock, claim } = fixture;
    const runner = await claim(2);
    await clock.advance(1_500);
    const [endFirst, endSecond] = [runner.beginActivity(), runner.beginActivity()];
    await clock.advance(60_000);
    endFirst();
    endFirst();
    await clock.advance(60_000);
    expect(runner.runnerSignal.aborted).to.equal(false);
    endSecond();
    await clock.advance(1_999);
    expect(runner.runnerSignal.aborted).to.equal(false);
    await clock.advance(1);
    expect(runner.runnerSignal.aborted).to.equal(true);
    runner.beginActivity()();
    await clock.advance(10_000);
  });

  it('has no inactivity timer with 0, but a longest life', async () => {
    fixture = await startRunners({ maxLifetime: 3_600 });
    const { clock, claim } = fixture;
    const runner = await claim(0);
    runner.beginActivity();
    await clock.advance(3_599_000);
    expect(runner.runnerSignal.aborted).to.equal(false);
    await clock.advance(1_000);
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'max-lifetime');
  });

  it('has neither with both 0 [B14]', async () => {
    fixture = await startRunners({ maxLifetime: 0 });
    const { clock, claim } = fixture;
    const runner = await claim(0);
    await clock.advance(10 * 86_400_000);
    expect(runner.runnerSignal.aborted).to.equal(false);
  });
});
