import { expect } from 'chai';
import fc from 'fast-check';
import { LineSplitter } from '../../lib/nomad/ndjson.js';

describe('LineSplitter', () => {
  it('gives the same lines wherever chunks end, in the middle of a character too', () => {
    const text = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 12 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(400), { maxLength: 30 }), (parts, cuts) => {
        const lines = parts.map((part) => part.replace(/\s/g, '_'));
        const body = Buffer.from(lines.join('\n'));
        const borders = [
          0,
          ...cuts.map((cut) => Math.min(cut, body.length)).sort((a, b) => a - b),
          body.length,
        ];
        const splitter = new LineSplitter();
        const found = borders
          .slice(1)
          .flatMap((end, index) => splitter.push(body.subarray(borders[index], end)));
        expect(found).to.deep.equal(lines.slice(0, -1).filter((each) => each !== ''));
        expect(splitter.rest()).to.equal(lines.at(-1) ?? '');
      }),
    );
  });
});
