import { expect } from 'chai';
import fc from 'fast-check';
import { assignment, quote } from '../../lib/shell/quote.js';
import { eachShell, runShell } from '../support/shells.js';

const text = fc.oneof(
  fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0')),
  fc.string({
    unit: fc.constantFrom("'", '"', '\\', '$', '`', '\n', '\t', ' ', '!', '*', ';', '(', '%', 'a'),
  }),
);

describe('quote', () => {
  eachShell((shell) => {
    it(`gives ${shell[0]} any texts back unchanged [A4-85] [B9]`, () => {
      fc.assert(
        fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (texts) => {
          const script = `${texts.map((value) => `printf '%s.' ${quote(value)}`).join('\n')}`;
          expect(runShell(shell, script)).to.equal(texts.map((value) => `${value}.`).join(''));
        }),
        { numRuns: 25 },
      );
    });
  });

  it('assigns a value without running any of it', () => {
    const script = `${assignment('a', '$(echo x); `id`\n')}; printf '%s' "$a"`;
    expect(runShell(['sh'], script)).to.equal('$(echo x); `id`\n');
  });

  it('refuses a NUL, which no shell word can hold', () => {
    expect(() => quote('a\0b')).to.throw(RangeError);
  });
});
