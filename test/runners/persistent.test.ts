import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { Persistent } from '../../lib/runners/persistent.js';
import { failureOf } from '../support/failures.js';
import { FakeClock, settle } from '../support/fake-clock.js';

describe('Persistent', () => {
  function failing(times: number) {
    const clock = new FakeClock();
    const abort = new AbortController();
    const told: unknown[] = [];
    let tries = 0;
    const work = (): Promise<void> => {
      tries += 1;
      return tries <= times
        ? Promise.reject(new ServiceError('NOMAD_UNREACHABLE', `no ${tries}`))
        : Promise.resolve();
    };
    const persistent = new Persistent({
      work,
      clock,
      random: () => 1,
      onTrouble: (error) => told.push(error),
    });
    return { clock, abort, told, persistent, tries: () => tries };
  }

  it('tries with growing pauses until it is done, and tells of trouble once', async () => {
    const { clock, abort, told, persistent, tries } = failing(3);
    const running = persistent.run(abort.signal);
    await clock.advance(0);
    expect(tries()).to.equal(1);
    await clock.advance(1_000);
    expect(tries()).to.equal(2);
    await clock.advance(2_000 + 4_000);
    await running;
    expect(tries()).to.equal(4);
    expect(told).to.have.length(1);
    expect(clock.armed).to.equal(0);
  });

  it('tries at once for whoever asks, tells how that went, and works no more once it is done', async () => {
    const { abort, persistent, tries, clock } = failing(2);
    const running = persistent.run(abort.signal);
    await settle();
    expect((await failureOf(persistent.attempt(abort.signal))).message).to.equal('no 2');
    await persistent.attempt(abort.signal);
    await running;
    await persistent.attempt(abort.signal);
    await settle();
    expect(tries()).to.equal(3);
    expect(clock.armed).to.equal(0);
  });

  it('shares the attempt under way', async () => {
    const { abort, persistent, tries } = failing(0);
    const running = persistent.run(abort.signal);
    await Promise.all([persistent.attempt(abort.signal), persistent.attempt(abort.signal), running]);
    expect(tries()).to.equal(1);
  });

  it('ends with its owner, and lets those who wait know', async () => {
    const { abort, persistent, clock } = failing(Infinity);
    const running = persistent.run(abort.signal);
    await settle();
    abort.abort(new ServiceError('STOPPED', 'enough'));
    await running;
    expect((await failureOf(persistent.attempt(abort.signal))).code).to.equal('STOPPED');
    expect(clock.armed).to.equal(0);
  });
});
