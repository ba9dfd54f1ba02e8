import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const unreachable = (): never => {
  throw new ServiceError('NOMAD_UNREACHABLE', 'connection refused');
};

describe('following Nomad', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('subscribes before it lists, and loses nothing that happens in between [A1-8]', async () => {
    const nomad = new FakeNomad();
    await (await startRunners({ nomad })).manager.stop();
    const [purged = '', kept = ''] = nomad.runnerJobs(7);
    const listed = gate();
    let isHeld = true;
    nomad.after = ({ op, filter }) => (op === 'jobs.list' && !filter && isHeld ? listed.promise : undefined);
    fixture = await startRunners({ nomad, environments: [] });
    const { manager, statistics, claim } = fixture;
    const sequence = nomad.calls.map(({ op }) => op);
    expect(sequence.lastIndexOf('subscribe')).to.be.lessThan(sequence.lastIndexOf('jobs.list'));
    // After the list was taken and before it arrives, a runner starts and another is purged.
    const template = nomad.jobDocuments.get('template-7')!;
    const started = '7-00000000-0000-4000-8000-000000000001';
    nomad.putJob({ ...template, ID: started });
    nomad.run(nomad.place(started).id);
    nomad.purgeJob(purged);
    isHeld = false;
    listed.open();
    await settle();
    expect(manager.ready).to.equal(true);
    expect(statistics()).to.include({ idleRunners: 2, pendingRunners: 0 });
    expect([(await claim()).id, (await claim()).id]).to.have.members([kept, started]);
  });

  it('does not believe a listing about what happened since it was asked for', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, claim, statistics } = fixture;
    const listed = gate();
    nomad.after = async ({ op, id }) => {
      if (op === 'jobs.get' && id.startsWith('template-')) await listed.promise;
    };
    await clock.advance(300_000); // everything is read, and nothing has arrived
    const runner = await claim();
    await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 3, image: 'new:1' }));
    await settle();
    const jobs = nomad.runnerJobs(7);
    nomad.after = () => undefined;
    listed.open();
    await settle();
    expect(manager.environments()[0]?.image).to.equal('new:1');
    expect(manager.get(runner.id)).to.equal(runner);
    expect(nomad.runnerJobs(7)).to.deep.equal(jobs);
    expect(statistics()).to.include({ idleRunners: 3, usedRunners: 1 });
  });

  it('finds what started while the stream was down, after each reconnect [A1-7]', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, statistics } = fixture;
    for (let size = 3; size < 6; size += 1) {
      nomad.muted = true;
      await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: size }));
      await settle();
      expect(statistics()).to.include({ idleRunners: size - 1, pendingRunners: 1 });
      nomad.muted = false;
      nomad.cut();
      await clock.advance(4_000);
      expect(statistics()).to.include({ idleRunners: size, pendingRunners: 0 });
    }
    expect(nomad.openStreams).to.equal(1);
  });

  it('leaves running work alone over a resync, and finds what was lost meanwhile [A1-17]', async () => {
    fixture = await startRunners();
    const { nomad, clock, claim, manager } = fixture;
    const [alive, lost] = [await claim(), await claim()];
    nomad.muted = true;
    nomad.cut();
    await settle();
    nomad.purgeJob(lost.id);
    nomad.muted = false;
    await clock.advance(1_000);
    expect(manager.get(alive.id)).to.equal(alive);
    expect(alive.runnerSignal.aborted).to.equal(false);
    expect(lost.runnerSignal.aborted).to.equal(true);
  });

  it('backs off while Nomad is down, says so once, and is whole again afterwards [A1-9] [A4-94]', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, warnings, claim, statistics } = fixture;
    const runner = await claim();
    await settle();
    nomad.before = unreachable;
    nomad.cut();
    await settle();
    expect(manager.nomadReachable).to.equal(false);
    expect(statistics()).to.include({ state: 'unhealthy', reason: 'Nomad cannot be reached' });
    const from = nomad.callsOf('subscribe').length;
    await clock.advance(600_000);
    // 0.75, 1.5, 3, 6, 12, 22.5, 22.5 … seconds: half of the doubled pause and half of that again by chance.
    expect(nomad.callsOf('subscribe').length - from).to.be.within(24, 32);
    expect(warnings.filter((message) => message.includes('cannot be followed'))).to.have.length(1);
    expect((await failureOf(claim())).code).to.equal('NOMAD_UNREACHABLE');
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(manager.nomadReachable).to.equal(true);
    expect(manager.get(runner.id)).to.equal(runner);
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 1, state: 'ready' });
  });

  it('is whole again within seconds of the return of Nomad, however long the pauses have become', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager } = fixture;
    nomad.before = unreachable;
    nomad.cut();
    await clock.advance(120_000);
    const attempts = nomad.callsOf('subscribe').length;
    while (nomad.callsOf('subscribe').length === attempts) await clock.advance(100);
    nomad.before = () => undefined; // a pause of 20 s has just begun
    await clock.advance(6_000);
    expect(manager.nomadReachable).to.equal(true);
  });

  it('registers nothing while it cannot see what there is', async () => {
    fixture = await startRunners();
    const { nomad, clock, claim } = fixture;
    nomad.before = ({ op }) => (op === 'subscribe' ? unreachable() : undefined);
    nomad.cut();
    await settle();
    const before = nomad.runnerJobs(7).length;
    await claim();
    await clock.advance(20_000);
    expect(nomad.runnerJobs(7)).to.have.length(before);
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(nomad.runnerJobs(7)).to.have.length(before + 1);
  });

  it('survives a burst of events and a stream that ends in the middle of it [A1-11]', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, statistics } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    const { id: allocation } = nomad.allocationOf(id);
    for (let n = 0; n < 20_000; n += 1) nomad.update(allocation, {});
    nomad.cut();
    await clock.advance(1_000);
    expect(manager.nomadReachable).to.equal(true);
    expect(statistics().idleRunners).to.equal(2);
  });

  it('waits with patience for a cluster without a leader, and never calls an environment unknown [A1-14]', async () => {
    const nomad = new FakeNomad();
    await (await startRunners({ nomad })).manager.stop();
    let failures = 5;
    nomad.before = ({ op, filter }) => {
      if (op !== 'jobs.list' || filter !== undefined || failures === 0) return;
      failures -= 1;
      throw new ServiceError('NOMAD_OVERLOADED', 'No cluster leader');
    };
    fixture = await startRunners({ nomad });
    const { clock, claim, manager } = fixture;
    while (!manager.ready) {
      expect((await failureOf(claim())).code).to.equal('NOT_READY');
      await clock.advance(1_000);
    }
    expect(failures).to.equal(0);
    await settle();
    await claim();
  });

  it('is ready without a first word on the stream [A1-12]', async () => {
    fixture = await startRunners({ environments: [] });
    expect(fixture.manager.ready).to.equal(true);
  });

  it('finds by listing now and then what no event told [A1-19] [A1-36]', async () => {
    fixture = await startRunners();
    const { nomad, clock, claim, statistics } = fixture;
    const runner = await claim();
    await settle();
    const [idle = ''] = nomad.runnerJobs(7).filter((id) => id !== runner.id);
    nomad.muted = true;
    nomad.purgeJob(idle);
    nomad.purgeJob(runner.id);
    nomad.muted = false;
    await clock.advance(300_000);
    expect(runner.runnerSignal.aborted).to.equal(true);
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('notices between listings that Nomad answers no more', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager } = fixture;
    nomad.before = ({ op }) => (op === 'leader' ? unreachable() : undefined);
    await clock.advance(5_000);
    await settle();
    expect(nomad.callsOf('leader')).to.have.length(1);
    expect(nomad.callsOf('subscribe')).to.have.length(1);
    await clock.advance(1_000);
    expect(nomad.callsOf('subscribe')).to.have.length(2);
    expect(manager.nomadReachable).to.equal(true);
  });

  it('calls a Nomad that is frozen out of reach within seconds, until its answer comes', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, warnings, claim } = fixture;
    const runner = await claim();
    await settle();
    const frozen = gate();
    nomad.before = ({ op }) => (op === 'leader' ? frozen.promise : undefined);
    await clock.advance(7_000);
    expect(manager.nomadReachable).to.equal(true);
    await clock.advance(1_000);
    expect(manager.nomadReachable).to.equal(false);
    await clock.advance(60_000);
    expect(nomad.callsOf('leader')).to.have.length(1);
    expect(warnings).to.deep.equal(['Nomad does not answer, waiting for it']);
    frozen.open();
    await settle();
    expect(manager.nomadReachable).to.equal(true);
    expect(nomad.callsOf('subscribe'), 'the session went on').to.have.length(1);
    expect(manager.get(runner.id)).to.equal(runner);
  });

  it('tells of one outage where a frozen Nomad turns out to be gone', async () => {
    fixture = await startRunners();
    const { nomad, clock, manager, warnings } = fixture;
    const frozen = gate();
    nomad.before = async ({ op }) => {
      if (op === 'leader') await frozen.promise;
      unreachable();
    };
    await clock.advance(8_000);
    frozen.open();
    await clock.advance(60_000);
    expect(manager.nomadReachable).to.equal(false);
    expect(warnings).to.deep.equal(['Nomad does not answer, waiting for it']);
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(manager.nomadReachable).to.equal(true);
  });

  it('asks for no sign of life while events arrive', async () => {
    fixture = await startRunners();
    const { nomad, clock } = fixture;
    const [id = ''] = nomad.runnerJobs(7);
    for (let second = 0; second < 60; second += 1) {
      nomad.update(nomad.allocationOf(id).id, {});
      await clock.advance(1_000);
    }
    expect(nomad.callsOf('leader')).to.deep.equal([]);
    await clock.advance(60_000);
    expect(nomad.callsOf('leader').length).to.be.within(10, 12);
  });
});
