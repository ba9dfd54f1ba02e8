import { expect } from 'chai';
import fc from 'fast-check';
import { Base64Decoder } from '../../../lib/api/uploads/base64.js';

function decode(text: string, size = text.length || 1): Buffer {
  const decoder = new Base64Decoder('copy[0].content');
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(decoder.push(bytes.subarray(at, at + size)));
  decoder.end();
  return Buffer.concat(pieces);
}

function count(text: string, size: number): number {
  const decoder = new Base64Decoder('copy[0].content');
  const bytes = Buffer.from(text);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += size) sum += decoder.count(bytes.subarray(at, at + size));
  decoder.end();
  return sum;
}

describe('Base64Decoder', () => {
  it('decodes whatever was encoded, and counts it before, with the escapes that JSON encoders write, over any borders', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 1, max: 9 }), (bytes, size) => {
        const text = Buffer.from(bytes).toString('base64');
        const escaped = text
          .replace(/.{20}/g, '$&\n')
          .replaceAll('/', '\\/')
          .replaceAll('+', '\\u002B')
          .replaceAll('\n', '\\n\n');
        expect(decode(escaped, size).equals(Buffer.from(bytes))).to.equal(true);
        expect(count(escaped, size)).to.equal(bytes.length);
      }),
    );
  });

  for (const text of [
    'A',
    'AAA',
    'A===',
    'AA=A',
    'AAAA=',
    'AA==AAAA',
    '****',
    'AA A',
    'AAA\\"',
    'AAA\\',
    'é===',
  ]) {
    it(`refuses ${text}`, () => {
      for (const size of [1, 100])
        expect(() => decode(text, size)).to.throw('copy[0].content must be padded base64');
    });
  }
});
