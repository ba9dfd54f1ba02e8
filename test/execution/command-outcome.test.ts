import { expect } from 'chai';
import { CommandOutcome } from '../../lib/execution/command-outcome.js';
import { FramedStream } from '../../lib/execution/framed-stream.js';
import { endMarker, startMarker } from '../../lib/shell/frames.js';
import { FakeClock } from '../support/fake-clock.js';

describe('CommandOutcome', () => {
  it('reads on for output after its process was stopped for longer than the grace', async () => {
    /** Timers that are due come first, as after SIGCONT. */
    class StoppedClock extends FakeClock {
      readonly due: (() => void)[] = [];
      override setTimer(_delayMs: number, callback: () => void) {
        this.due.push(callback);
        return { cancel: () => void this.due.splice(this.due.indexOf(callback), 1) };
      }
    }
    const clock = new StoppedClock();
    let output = '';
    const stream = new FramedStream('1', {
      output: (bytes) => (output += bytes.toString()),
      ended: () => undefined,
    });
    const outcome = new CommandOutcome(clock, [stream]);
    stream.push(startMarker('1'));
    outcome.exited(2);
    for (const callback of clock.due.splice(0)) callback();
    expect(outcome.settled).to.equal(false);
    stream.push(Buffer.concat([Buffer.from('text'), endMarker('1')]));
    outcome.progress();
    expect(await outcome.end).to.deep.equal({ kind: 'exited', exitCode: 2 });
    expect([output, clock.due.length]).to.deep.equal(['text', 0]);
  });

  it('does not wait for a silent stream beyond the grace', async () => {
    const clock = new FakeClock();
    const stream = new FramedStream('1', { output: () => undefined, ended: () => undefined });
    const outcome = new CommandOutcome(clock, [stream]);
    outcome.exited(0);
    await clock.advance(999);
    expect(outcome.settled).to.equal(false);
    await clock.advance(1);
    expect([outcome.settled, clock.armed]).to.deep.equal([true, 0]);
  });
});
