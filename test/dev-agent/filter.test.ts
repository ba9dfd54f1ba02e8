import { expect } from 'chai';
import fc from 'fast-check';
import { HttpFailure } from '../../lib/dev-agent/failure.js';
import { matches } from '../../lib/dev-agent/filter/evaluate.js';
import { parseFilter } from '../../lib/dev-agent/filter/parser.js';

const job = {
  ID: '7-a',
  Status: 'running',
  Stop: false,
  Priority: 50,
  Meta: { serai_spec: 'x' },
  TaskGroups: [
    { Name: 'default-group', Meta: null },
    { Name: 'config', Meta: { used: 'true', 'odd key': 'a "quoted" value' } },
  ],
};

const met = (text: string): boolean => matches(parseFilter(text), job);

function refusal(text: string): string {
  try {
    met(text);
  } catch (error) {
    if (error instanceof HttpFailure) return `${error.status} ${error.message}`;
    throw error;
  }
  throw new Error(`${text} is taken`);
}

describe('filters of the embedded agent', () => {
  it('compares fields with values, quoted or bare', () => {
    expect(met('Status == "running"')).to.equal(true);
    expect(met('Status == running')).to.equal(true);
    expect(met('Status != `running`')).to.equal(false);
    expect(met('Stop == false and Priority == 50')).to.equal(true);
    expect(met('ID matches "^7-"')).to.equal(true);
    expect(met('ID not matches "^8-"')).to.equal(true);
  });

  it('finds groups by what is in them', () => {
    const used = (value: string): string =>
      `any TaskGroups as tg { tg.Name == "config" and tg.Meta["used"] == "${value}" }`;
    expect(met(used('true'))).to.equal(true);
    expect(met(used('false'))).to.equal(false);
    expect(met('any TaskGroups as tg { tg.Name == "default-group" and tg.Meta["used"] == "true" }')).to.equal(
      false,
    );
    expect(met('any TaskGroups as tg { tg.Meta["odd key"] == "a \\"quoted\\" value" }')).to.equal(true);
  });

  it('finds nothing under a key that a map lacks', () => {
    expect(met('Meta["serai_spec"] == "x"')).to.equal(true);
    expect(met('Meta["other"] == "x"')).to.equal(false);
    expect(met('Meta["other"] != "x"')).to.equal(true);
  });

  it('binds "and" closer than "or", and "not" closest', () => {
    expect(met('Stop == true and Stop == true or Status == "running"')).to.equal(true);
    expect(met('Stop == true and (Stop == true or Status == "running")')).to.equal(false);
    expect(met('not Stop == true and Status == "running"')).to.equal(true);
  });

  it('refuses with the place and what was expected there', () => {
    expect(refusal('Nope ==')).to.match(
      /^400 failed to create result paginator: .* 1:8 \(7\): no match found, expected: "-"/,
    );
    expect(refusal('Status is empty')).to.contain('1:8 (7)');
    expect(refusal('"a" in Meta')).to.match(/^400 .*1:1 \(0\)/);
    expect(refusal('Status == "a" Status')).to.contain('expected: "and", "or" or EOF');
    expect(refusal('any TaskGroups as tg { tg.Name == "a"')).to.contain('"}"');
    expect(refusal('(Stop == true')).to.contain('")"');
    expect(refusal('ID matches "("')).to.match(/^400 .*invalid regular expression/);
  });

  it('refuses a field that no record has', () => {
    expect(refusal('Nope == "x"')).to.equal(
      `400 failed to read result page: error finding value in datum: /Nope at part 0: couldn't find key: struct field with name "Nope"`,
    );
  });

  it('reads every string back that it is given in quotes', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const text = `ID == ${JSON.stringify(value)}`;
        return matches(parseFilter(text), { ID: value }) && !matches(parseFilter(text), { ID: `${value}.` });
      }),
    );
  });

  it('takes or refuses any text, and never fails otherwise', () => {
    const piece = fc.constantFrom(
      'any',
      'as',
      '{',
      '}',
      '(',
      ')',
      'and',
      'or',
      'not',
      'ID',
      '==',
      '"x"',
      '.',
      '[',
      ']',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          met(pieces.join(' '));
        } catch (error) {
          return error instanceof HttpFailure && error.status === 400;
        }
        return true;
      }),
    );
  });
});
