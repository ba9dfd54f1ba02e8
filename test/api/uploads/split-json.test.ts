import { expect } from 'chai';
import fc from 'fast-check';
import { SplitJson } from '../../../lib/api/uploads/split-json.js';

const KEY = 'a-key-nobody-knows';

interface Split {
  readonly value: unknown;
  readonly long: readonly string[];
}

/** Pushes a body in pieces of the given sizes and puts the long texts back where they came from. */
function split(body: Buffer, sizes: readonly number[], longerThanBytes = 16): Split {
  const splitter = new SplitJson({ key: KEY, longerThanBytes, limitBytes: 1e6 });
  let at = 0;
  for (let turn = 0; at < body.length; turn += 1) {
    const size = sizes.length === 0 ? body.length : Math.max(1, sizes[turn % sizes.length] ?? 1);
    splitter.push(body.subarray(at, at + size));
    at += size;
  }
  const { skeleton, long } = splitter.end();
  const texts = long.map(({ start, end }) => JSON.parse(`"${body.toString('utf8', start, end)}"`) as string);
  const back = (_key: string, value: unknown): unknown => {
    const index =
      typeof value === 'string' && value.startsWith(`${KEY}:`) ? Number(value.slice(KEY.length + 1)) : -1;
    return texts[index] ?? value;
  };
  return { value: JSON.parse(skeleton.toString(), back), long: texts };
}

describe('SplitJson', () => {
  it('gives back every body that it took apart, whatever the borders of its chunks', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            path: fc.string({ unit: 'grapheme', maxLength: 40 }),
            content: fc.string({ maxLength: 60 }),
          }),
        ),
        fc.array(fc.integer({ min: 1, max: 30 })),
        (copy, sizes) => {
          const body = Buffer.from(JSON.stringify({ copy, '\\"': 'x' }).replaceAll('/', '\\/'));
          expect(split(body, sizes).value).to.deep.equal({ copy, '\\"': 'x' });
        },
      ),
    );
  });

  it('takes out texts above the bound only', () => {
    const { long } = split(Buffer.from(JSON.stringify(['x'.repeat(16), 'y'.repeat(17)])), []);
    expect(long).to.deep.equal(['y'.repeat(17)]);
  });

  it('does not take an escaped quote at a border for the end of a text', () => {
    const text = `${'\\"'.repeat(20)}end`;
    expect(split(Buffer.from(JSON.stringify({ text })), [1]).value).to.deep.equal({ text });
  });

  it('stops at its limit, whatever the skeleton is made of', () => {
    const splitter = new SplitJson({ key: KEY, longerThanBytes: 16, limitBytes: 100 });
    expect(splitter.push(Buffer.from('[' + '"a",'.repeat(20)))).to.equal(true);
    expect(splitter.push(Buffer.from('"a",'.repeat(20)))).to.equal(false);
    expect(splitter.end().skeleton.length).to.be.at.most(100);
  });

  it('leaves a body that breaks off in a text unparsable', () => {
    expect(() => split(Buffer.from('{"a":"unfinished'), [3])).to.throw(SyntaxError);
  });
});
