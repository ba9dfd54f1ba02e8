import { expect } from 'chai';
import fc from 'fast-check';
import type { Share } from '../../lib/base/budget.js';
import { Budget } from '../../lib/base/budget.js';
import { ServiceError } from '../../lib/base/errors.js';
import { settle } from '../support/fake-clock.js';

const patient = new AbortController().signal;

describe('Budget', () => {
  it('grants what fits, and the rest in turn as it is given back', async () => {
    const budget = new Budget(10);
    const first = await budget.take(6, patient);
    const granted: string[] = [];
    const large = budget.take(8, patient).then((share) => (granted.push('large'), share));
    const small = budget.take(1, patient).then((share) => (granted.push('small'), share));
    await settle();
    expect(granted, 'small does not overtake large').to.deep.equal([]);
    expect([budget.held, budget.waiting]).to.deep.equal([6, 2]);
    first.release();
    first.release();
    await Promise.all([large, small]);
    expect(granted).to.deep.equal(['large', 'small']);
    expect([budget.held, budget.waiting]).to.deep.equal([9, 0]);
  });

  it('takes back a part of what is held, and no more than that', async () => {
    const budget = new Budget(10);
    const share = await budget.take(10, patient);
    share.shrinkTo(20);
    expect(budget.held).to.equal(10);
    share.shrinkTo(3);
    expect(budget.held).to.equal(3);
    (await budget.take(7, patient)).release();
    share.release();
    expect(budget.held).to.equal(0);
  });

  it('gives the whole to who wants more', async () => {
    const budget = new Budget(10);
    (await budget.take(1000, patient)).release();
    expect(budget.held).to.equal(0);
  });

  it('lets those that give up go, and whoever is behind them pass', async () => {
    const budget = new Budget(10);
    const share = await budget.take(6, patient);
    const leaving = new AbortController();
    const waiting = budget.take(8, leaving.signal);
    const behind = budget.take(4, patient);
    leaving.abort(new ServiceError('STOPPED', 'left'));
    await waiting.then(
      () => expect.fail('it was granted'),
      (error: unknown) => expect(error).to.have.property('code', 'STOPPED'),
    );
    (await behind).release();
    await budget.take(1, leaving.signal).then(
      () => expect.fail('it was granted'),
      () => undefined,
    );
    share.release();
    expect([budget.held, budget.waiting]).to.deep.equal([0, 0]);
  });

  it('never holds more than it is, and ends empty, in any order of events', async () => {
    const step = fc.record({
      amount: fc.integer({ min: 0, max: 12 }),
      leaves: fc.boolean(),
      frees: fc.nat(5),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const budget = new Budget(10);
        const shares: Share[] = [];
        for (const { amount, leaves, frees } of steps) {
          const abort = new AbortController();
          void budget.take(amount, abort.signal).then(
            (share) => shares.push(share),
            () => undefined,
          );
          if (leaves) abort.abort();
          await Promise.resolve();
          shares.splice(0, frees).forEach((share) => share.release());
          expect(budget.held).to.be.within(0, 10);
        }
        while (budget.held + budget.waiting > 0 || shares.length > 0) {
          await settle();
          shares.splice(0).forEach((share) => share.release());
        }
        expect(budget.held).to.equal(0);
      }),
    );
  });
});
