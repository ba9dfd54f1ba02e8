import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { replicaId } from '../../lib/base/ids.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { Replicas } from '../support/shared-runners.js';
import { whyGone } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const OWN = { kind: 'own' };

describe('a runner whose owner is dead', () => {
  let replicas: Replicas;
  beforeEach(async () => {
    replicas = await Replicas.start({ orphanTimeout: 600 });
  });
  afterEach(() => replicas[Symbol.asyncDispose]());

  it('is taken over by whoever gets a request for it, with its inactivity time in full', async () => {
    const { a, b, nomad, clock } = replicas;
    const { id, allocationId } = await a.claim(60);
    await settle();
    await a.manager.stop();
    await clock.advance(50_000);
    await replicas.lose('a');
    expect(b.manager.owns(id)).to.equal(false);
    expect(await Promise.all([b.locate(id), b.locate(id), b.locate(id)])).to.deep.equal([OWN, OWN, OWN]);
    expect(nomad.metaOf(id)).to.include({ used: 'true', owner: 'b', timeout: '60' });
    const runner = b.manager.get(id);
    expect(runner.allocationId).to.equal(allocationId);
    await clock.advance(59_000);
    expect(whyGone(runner)).to.equal(undefined);
    await clock.advance(1_000);
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'inactive']);
    expect(nomad.jobDocuments.has(id)).to.equal(false);
  });

  it('is taken from a living owner never, and from none while it is unknown who lives', async () => {
    const { a, b, nomad } = replicas;
    const { id } = await a.claim();
    await settle();
    await replicas.lose('a');
    b.cluster.become({ isInformed: false });
    expect((await failureOf(b.locate(id))).code).to.equal('NOMAD_UNREACHABLE');
    expect(nomad.metaOf(id).owner).to.equal('a');
  });

  it('is not taken from one that has started a moment ago, of which only Nomad knows', async () => {
    const { a, b, nomad } = replicas;
    const { id } = await a.claim();
    await settle();
    const [newcomer] = b.cluster.living().filter((each) => each.id === 'a');
    await replicas.lose('a');
    if (newcomer) b.cluster.newcomers.set(newcomer.id, newcomer);
    expect(await b.locate(id)).to.deep.equal({ kind: 'elsewhere', owner: newcomer });
    expect(nomad.metaOf(id).owner).to.equal('a');
  });

  it('is given up by the one that was taken for dead as soon as it hears of it, and is not purged', async () => {
    const { a, b, nomad, clock } = replicas;
    const runner = await a.claim(60);
    await settle();
    await replicas.lose('a');
    expect(await b.locate(runner.id)).to.deep.equal(OWN);
    await settle();
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'taken-over']);
    expect(a.manager.owns(runner.id)).to.equal(false);
    expect(await a.locate(runner.id)).to.have.nested.property('owner.id', 'b');
    await clock.advance(30_000);
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    expect(whyGone(b.manager.get(runner.id))).to.equal(undefined);
  });

  it('is not purged by the one that was taken for dead, though its timer fires before it hears of it', async () => {
    const { a, b, nomad, clock } = replicas;
    const runner = await a.claim(60);
    await settle();
    await replicas.lose('a');
    nomad.muted = true; // a hears nothing
    expect(await b.locate(runner.id)).to.deep.equal(OWN);
    b.manager.get(runner.id).beginActivity();
    await clock.advance(60_000);
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'inactive']);
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    expect(a.manager.owns(runner.id)).to.equal(false);
    expect(await a.locate(runner.id)).to.have.nested.property('owner.id', 'b');
  });

  it('is not called gone by the one that was taken for dead while that gives it up by a timer of its own', async () => {
    const { a, b, nomad, clock } = replicas;
    const { id } = await a.claim(60);
    await settle();
    await replicas.lose('a');
    nomad.muted = true; // a hears nothing
    expect(await b.locate(id)).to.deep.equal(OWN);
    b.manager.get(id).beginActivity();
    const held = gate();
    let reads = 0;
    nomad.before = ({ op, id: of }) => {
      // The first reading is that of the removal.
      if (op === 'jobs.get' && of === id && (reads += 1) === 1) return held.promise;
      return undefined;
    };
    await clock.advance(60_000);
    expect([reads, a.manager.owns(id)]).to.deep.equal([1, false]);
    expect(await a.locate(id)).to.have.nested.property('owner.id', 'b');
    held.open();
    await settle();
    expect(nomad.metaOf(id)).to.include({ owner: 'b' });
  });

  it('is not taken over, and then purged, by one that is about to purge it', async () => {
    const { a, b, nomad, clock } = replicas;
    nomad.muted = true; // b hears nothing of the claim
    const { id } = await a.claim(0);
    nomad.before = ({ op, id: of }) => {
      if (op === 'jobs.get' && of === id) throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    expect(b.manager.replaceIdle(id, 'a check failed')).to.equal(true);
    await settle();
    await replicas.lose('a');
    nomad.before = () => undefined;
    expect((await failureOf(b.locate(id))).retryAfterSeconds).to.equal(2);
    await clock.advance(30_000); // the removal is tried again, and finds whose it is
    expect(await b.locate(id)).to.deep.equal(OWN);
    await clock.advance(30_000);
    expect(nomad.metaOf(id)).to.include({ used: 'true', owner: 'b' });
    expect(b.manager.get(id).id).to.equal(id);
  });

  it('is taken over by one of two that get a request at once', async () => {
    const { a, nomad, clock } = replicas;
    const { id } = await a.claim();
    await settle();
    await a.manager.stop();
    await replicas.lose('a');
    // Another one that nobody has told of the takeover.
    nomad.muted = true;
    expect(await replicas.b.locate(id)).to.deep.equal(OWN);
    nomad.muted = false;
    const late = await replicas.join('a');
    expect(await late.locate(id)).to.have.nested.property('owner.id', 'b');
    await clock.advance(1_000);
    expect(nomad.metaOf(id).owner).to.equal('b');
  });

  it('is looked at again where the takeover met another write', async () => {
    const { a, b, nomad } = replicas;
    const { id } = await a.claim(60);
    await settle();
    await replicas.lose('a');
    nomad.before = ({ op, id: of }) => {
      if (op !== 'register' || of !== id) return;
      nomad.before = () => undefined;
      nomad.purgeJob(id); // a lives after all, and its client returned it
    };
    expect(await b.locate(id)).to.deep.equal(OWN);
    expect((await failureOf(() => b.manager.get(id))).code).to.equal('RUNNER_GONE');
    expect(nomad.jobDocuments.has(id)).to.equal(false);
  });

  it('is taken over although the answer to the write was lost', async () => {
    const { a, b, nomad } = replicas;
    const { id } = await a.claim(60);
    await settle();
    await a.manager.stop();
    await replicas.lose('a');
    nomad.after = ({ op, id: of }) => {
      if (op === 'register' && of === id) throw new ServiceError('NOMAD_UNREACHABLE', 'cut');
    };
    expect((await failureOf(b.locate(id))).code).to.equal('NOMAD_UNREACHABLE');
    nomad.after = () => undefined;
    await settle(); // the event tells
    expect(b.manager.owns(id)).to.equal(true);
    expect(b.manager.get(id).id).to.equal(id);
  });

  it('is purged by the leader alone, when no request came for the orphan timeout', async () => {
    const { a, b, nomad, clock } = replicas;
    const [first, second] = [await a.claim(), await a.claim()];
    await settle();
    await a.manager.stop();
    await replicas.lose('a');
    b.cluster.become({ leads: false });
    await clock.advance(599_000);
    expect(await b.locate(second.id)).to.deep.equal(OWN);
    await clock.advance(60_000);
    expect(nomad.jobDocuments.has(first.id), 'nobody leads').to.equal(true);
    b.cluster.become({ leads: true });
    await settle();
    expect(nomad.jobDocuments.has(first.id)).to.equal(false);
    expect(nomad.jobDocuments.has(second.id)).to.equal(true);
  });

  it('is found again by its owner, which was away for less than that', async () => {
    const { a, b, nomad, clock } = replicas;
    const { id } = await a.claim(60);
    await settle();
    await a.manager.stop();
    await replicas.lose('a');
    await clock.advance(300_000);
    const again = await replicas.join('a');
    b.cluster.add('a', 'http://a.test');
    await settle();
    expect(again.manager.get(id).id).to.equal(id);
    expect(await b.locate(id)).to.have.nested.property('owner.id', 'a');
    await clock.advance(59_000);
    expect(nomad.jobDocuments.has(id)).to.equal(true);
    await clock.advance(1_000);
    expect(nomad.jobDocuments.has(id), 'its own timer').to.equal(false);
  });

  it('is let go of by a service whose name another process took, and is not purged', async () => {
    const { a, nomad, clock } = replicas;
    const runner = await a.claim(60);
    await settle();
    a.cluster.become({ isFenced: true, leads: false });
    await clock.advance(120_000);
    expect(runner.runnerSignal.aborted).to.equal(true);
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    expect(a.cluster.listeners).to.equal(0);
    expect(replicas.b.cluster.find(replicaId('a'))?.id).to.equal('a');
  });
});
