import { StringDecoder } from 'node:string_decoder';
import { expect } from 'chai';
import fc from 'fast-check';
import { CommandOutput } from '../../lib/execution/command-output.js';
import { settle } from '../support/fake-clock.js';
import { RecordingSink } from '../support/recording-sink.js';

/** What a slow client holds back. */
class TestSource {
  readonly calls: string[] = [];
  pause = (): void => void this.calls.push('pause');
  resume = (): void => void this.calls.push('resume');
}

describe('CommandOutput', () => {
  const source = new TestSource();
  let sink: RecordingSink;

  beforeEach(() => {
    sink = new RecordingSink();
    source.calls.length = 0;
  });

  const chunks = fc.array(
    fc.record({
      stream: fc.constantFrom('stdout', 'stderr'),
      bytes: fc.oneof(
        fc.uint8Array({ maxLength: 6 }),
        fc.string({ unit: 'binary', maxLength: 6 }).map((text) => new TextEncoder().encode(text)),
      ),
    }),
    { maxLength: 12 },
  );

  it('passes on exactly as many bytes as the limit says, of both streams together, and nothing after', () => {
    fc.assert(
      fc.property(chunks, fc.integer({ min: 1, max: 30 }), (script, limitBytes) => {
        const total = script.reduce((sum, { bytes }) => sum + bytes.length, 0);
        const taken = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
        const whole = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
        let left = limitBytes;
        const given = new RecordingSink();
        const output = new CommandOutput({ sink: given, limitBytes });
        let isWithin = true;
        for (const { stream, bytes } of script) {
          taken[stream] = Buffer.concat([taken[stream], bytes.subarray(0, left)]);
          whole[stream] = Buffer.concat([whole[stream], bytes]);
          left -= Math.min(left, bytes.length);
          isWithin = output.push(source, stream, Buffer.from(bytes)) && isWithin;
        }
        output.end();
        expect(isWithin).to.equal(total <= limitBytes);
        for (const stream of ['stdout', 'stderr'] as const) {
          const decoder = new StringDecoder('utf8');
          expect(given[stream]).to.equal(decoder.write(taken[stream]) + (isWithin ? decoder.end() : ''));
          expect(whole[stream].toString().startsWith(given[stream])).to.equal(true);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('leaves a character out that the limit cuts, and keeps one that the command itself left incomplete', () => {
    const cut = new CommandOutput({ sink, limitBytes: 5 });
    expect(cut.push(source, 'stdout', Buffer.from('a€€'))).to.equal(false);
    cut.end();
    expect(sink.stdout).to.equal('a€');
    const whole = new CommandOutput({ sink, limitBytes: 5 });
    expect(whole.push(source, 'stderr', Buffer.from('a€€').subarray(0, 5))).to.equal(true);
    whole.end();
    expect(sink.stderr).to.equal('a€\ufffd');
  });

  it('has no limit where that is 0', () => {
    const output = new CommandOutput({ sink, limitBytes: 0 });
    for (let i = 0; i < 100; i += 1) {
      expect(output.push(source, 'stdout', Buffer.alloc(10_000, 'x'))).to.equal(true);
    }
    expect(sink.stdout).to.have.length(1_000_000);
  });

  it('holds its source back once while the client is slow', async () => {
    const output = new CommandOutput({ sink, limitBytes: 0 });
    sink.room = false;
    output.push(source, 'stdout', Buffer.from('much'));
    output.push(source, 'stderr', Buffer.from('was under way'));
    expect(source.calls).to.deep.equal(['pause']);
    sink.drain();
    await settle();
    expect(source.calls).to.deep.equal(['pause', 'resume']);
  });
});
