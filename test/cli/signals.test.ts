import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import { onSignals } from '../../lib/cli/signals.js';
import { FakeClock, settle } from '../support/fake-clock.js';

describe('onSignals', () => {
  it('tells of the first signal, of a second one, and not of one signal that came twice', async () => {
    const signals = new EventEmitter();
    const clock = new FakeClock();
    let first = 0;
    let second = 0;
    const { signalled, stopListening } = onSignals(signals, () => (second += 1), clock);
    void signalled.then(() => (first += 1));
    await settle();
    expect(first).to.equal(0);
    signals.emit('SIGINT');
    signals.emit('SIGINT');
    await settle();
    expect([first, second]).to.deep.equal([1, 0]);
    await clock.advance(400);
    signals.emit('SIGTERM');
    expect([first, second]).to.deep.equal([1, 1]);
    stopListening();
    expect(signals.eventNames()).to.deep.equal([]);
  });
});
