import { expect } from 'chai';
import fc from 'fast-check';
import { MarkerScanner } from '../../lib/execution/marker-scanner.js';

/** Cuts a text at arbitrary places. */
function chunked(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

/** Few different bytes, so that beginnings of the marker are frequent. */
const bytes = fc
  .array(fc.constantFrom(0x1d, 0x31, 0x32, 0x61), { maxLength: 40 })
  .map((values) => Buffer.from(values));
const marker = fc
  .array(fc.constantFrom(0x31, 0x32), { minLength: 1, maxLength: 6 })
  .map((values) => Buffer.from([0x1d, ...values]));
const cuts = fc.array(fc.nat(), { maxLength: 10 });

describe('MarkerScanner', () => {
  it('splits a stream at the first marker, wherever the chunks end', () => {
    fc.assert(
      fc.property(bytes, bytes, marker, cuts, (before, after, mark, places) => {
        const stream = Buffer.concat([before, mark, after]);
        const at = stream.indexOf(mark);
        const scanner = new MarkerScanner(mark);
        let output = Buffer.alloc(0);
        let rest: Buffer | undefined;
        for (const chunk of chunked(stream, places)) {
          if (rest) {
            rest = Buffer.concat([rest, chunk]);
            continue;
          }
          const step = scanner.push(chunk);
          output = Buffer.concat([output, step.before]);
          rest = step.after;
        }
        expect(output.toString('hex')).to.equal(stream.subarray(0, at).toString('hex'));
        expect(rest?.toString('hex')).to.equal(stream.subarray(at + mark.length).toString('hex'));
      }),
    );
  });

  it('keeps back only what may be the beginning of the marker, and loses nothing', () => {
    fc.assert(
      fc.property(bytes, marker, cuts, (stream, mark, places) => {
        fc.pre(!stream.includes(mark));
        const scanner = new MarkerScanner(mark);
        let given = 0;
        let seen = 0;
        for (const chunk of chunked(stream, places)) {
          seen += chunk.length;
          given += scanner.push(chunk).before.length;
          const held = stream.subarray(given, seen);
          expect(held.length).to.be.lessThan(mark.length);
          expect(mark.subarray(0, held.length).equals(held)).to.equal(true);
        }
        expect(given + scanner.flush().length).to.equal(stream.length);
      }),
    );
  });
});
