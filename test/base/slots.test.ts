import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { Slots } from '../../lib/base/slots.js';

describe('Slots', () => {
  it('listen once to a signal that thousands wait under, and let all of them go when it aborts', async () => {
    const slots = new Slots(1);
    const giveBack = await slots.take();
    const controller = new AbortController();
    const { signal } = controller;
    const waits = Array.from({ length: 1_000 }, () => slots.take(signal));
    expect(getEventListeners(signal, 'abort')).to.have.length(1);
    const other = new AbortController();
    const last = slots.take(other.signal);
    controller.abort(new ServiceError('STOPPED', 'enough'));
    const outcomes = await Promise.allSettled(waits);
    expect(outcomes.filter(({ status }) => status === 'rejected')).to.have.length(1_000);
    giveBack();
    (await last)();
    expect(slots.taken).to.equal(0);
  });

  it('listen no longer once nobody waits', async () => {
    const slots = new Slots(1);
    const { signal } = new AbortController();
    const giveBack = await slots.take(signal);
    const waits = [slots.take(signal), slots.take(signal)];
    giveBack();
    for (const wait of waits) (await wait)();
    expect(getEventListeners(signal, 'abort')).to.have.length(0);
  });

  it('refuse at once under a signal that is aborted already', async () => {
    const slots = new Slots(1);
    const signal = AbortSignal.abort(new ServiceError('STOPPED', 'over'));
    const failure: unknown = await slots.take(signal).catch((error: unknown) => error);
    expect(failure).to.have.property('code', 'STOPPED');
    expect(slots.taken).to.equal(0);
  });
});
