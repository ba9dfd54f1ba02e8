import { expect } from 'chai';
import { deadline, orAbort } from '../../lib/base/abort.js';
import { Backoff } from '../../lib/base/backoff.js';
import { ServiceError, hasCode } from '../../lib/base/errors.js';
import { environmentId, newRunnerId, parseRunnerId, systemRandomness } from '../../lib/base/ids.js';
import { Scope } from '../../lib/base/scope.js';
import { Slots } from '../../lib/base/slots.js';
import { FakeClock, settle } from '../support/fake-clock.js';

describe('Slots', () => {
  it('lets those beyond its size wait in order and gives a slot back once', async () => {
    const slots = new Slots(1);
    const order: string[] = [];
    const giveBack = await slots.take();
    const second = slots.take().then((give) => (order.push('second'), give));
    const third = slots.take().then((give) => (order.push('third'), give));
    await settle();
    expect(order).to.deep.equal([]);
    giveBack();
    giveBack();
    await settle();
    expect(order).to.deep.equal(['second']);
    (await second)();
    (await third)();
    expect(slots.taken).to.equal(0);
  });

  it('takes one that gives up out of the queue', async () => {
    const slots = new Slots(1);
    const giveBack = await slots.take();
    const controller = new AbortController();
    const waiting = slots.take(controller.signal);
    const reason = new ServiceError('STOPPED', 'gave up');
    controller.abort(reason);
    let thrown: unknown;
    await waiting.catch((error: unknown) => (thrown = error));
    expect(thrown).to.equal(reason);
    expect(slots.waiting).to.equal(0);
    giveBack();
    expect(slots.taken).to.equal(0);
  });
});

describe('Backoff', () => {
  it('doubles up to its bound, with jitter, and starts anew after a reset', () => {
    const backoff = new Backoff({ minMs: 1000, maxMs: 30_000, random: () => 1 });
    expect([1, 2, 3, 4, 5, 6, 7].map(() => backoff.nextMs())).to.deep.equal([
      1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ]);
    backoff.reset();
    expect(backoff.nextMs()).to.equal(1000);
    expect(new Backoff({ minMs: 1000, maxMs: 30_000, random: () => 0 }).nextMs()).to.equal(500);
  });
});

describe('deadline', () => {
  it('aborts with its own error, or never once cleared', async () => {
    const clock = new FakeClock();
    using late = deadline(clock, 100, 'NOMAD_UNREACHABLE', 'too slow');
    using cleared = deadline(clock, 100, 'NOMAD_UNREACHABLE', 'too slow');
    cleared.clear();
    await clock.advance(100);
    expect(hasCode(late.signal.reason, 'NOMAD_UNREACHABLE')).to.equal(true);
    expect(cleared.signal.aborted).to.equal(false);
  });
});

describe('orAbort', () => {
  it('rejects with the reason while the work goes on, and swallows its late failure', async () => {
    const controller = new AbortController();
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<never>((_resolve, reject) => (fail = reject));
    const waiting = orAbort(work, controller.signal);
    controller.abort(new ServiceError('STOPPED', 'stopped'));
    let thrown: unknown;
    await waiting.catch((error: unknown) => (thrown = error));
    expect(hasCode(thrown, 'STOPPED')).to.equal(true);
    fail(new Error('late'));
    await settle();
  });
});

describe('Scope', () => {
  it('closes in reverse, all of it, and throws the first failure', async () => {
    const order: number[] = [];
    const scope = new Scope();
    scope.defer(() => void order.push(1));
    scope.defer(() => {
      throw new Error('second');
    });
    scope.defer(() => void order.push(3));
    let thrown: unknown;
    await scope.close().catch((error: unknown) => (thrown = error));
    expect(order).to.deep.equal([3, 1]);
    expect(thrown).to.have.property('message', 'second');
  });
});

describe('runner ids', () => {
  it('name their environment exactly', () => {
    const id = newRunnerId(environmentId(10), systemRandomness);
    expect(parseRunnerId(id)?.environmentId).to.equal(10);
    for (const other of ['10', 'template-10', `1${id}x`, `x${id}`, `01${id.slice(2)}`, '10-1', '']) {
      expect(parseRunnerId(other), other).to.equal(undefined);
    }
  });
});
