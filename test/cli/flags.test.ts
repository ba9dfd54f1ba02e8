import { expect } from 'chai';
import { CONFIG_FLAGS, configFlags, describeFlags, parseFlags, UsageError } from '../../lib/cli/flags.js';

const SPECS = { ...CONFIG_FLAGS, once: { help: 'stop early' } };

describe('parseFlags', () => {
  it('takes values after a blank or an equals sign, and repeated flags where that is meant', () => {
    const given = parseFlags(SPECS, ['--port', '80', '--host=::1', '--set', 'a=1', '--set=b=2', '--once']);
    expect([...given]).to.deep.equal([
      ['port', ['80']],
      ['host', ['::1']],
      ['set', ['a=1', 'b=2']],
      ['once', ['']],
    ]);
  });

  const refused: readonly (readonly [string[], string])[] = [
    [['--prot', '80'], 'there is no flag --prot; did you mean --port?'],
    [['--log_level=info'], 'there is no flag --log_level; did you mean --log-level?'],
    [['-p', '80'], 'there is no flag -p'],
    [['--no-once'], 'there is no flag --no-once'],
    [['serve'], 'serve is not expected here'],
    [['--port'], '--port needs a value'],
    [['--once=yes'], '--once takes no value'],
    [['--port', '1', '--port', '2'], '--port is given twice'],
    [['--__proto__'], 'there is no flag --__proto__'],
  ];
  for (const [args, message] of refused) {
    it(`refuses ${args.join(' ')}`, () => {
      expect(() => parseFlags(SPECS, args)).to.throw(UsageError, message);
    });
  }
});

describe('configFlags', () => {
  it('turns flags into keys of the configuration', () => {
    const given = parseFlags(SPECS, [
      '--port',
      '80',
      '--log-level=debug',
      '--set',
      'nomad.token=a=b',
      '--once',
    ]);
    expect(configFlags(given)).to.deep.equal([
      { flag: '--set', key: 'nomad.token', text: 'a=b' },
      { flag: '--port', key: 'server.port', text: '80' },
      { flag: '--log-level', key: 'log.level', text: 'debug' },
    ]);
  });

  it('refuses --set without a key and a value', () => {
    for (const pair of ['port', '=1']) {
      expect(() => configFlags(parseFlags(SPECS, ['--set', pair]))).to.throw(UsageError, 'KEY=VALUE');
    }
  });
});

describe('describeFlags', () => {
  it('writes one line for each flag, in columns', () => {
    const lines = describeFlags(SPECS).trimEnd().split('\n');
    expect(lines).to.have.length(Object.keys(SPECS).length);
    expect(lines.at(-1)).to.match(/^ {2}--once +stop early$/);
    expect(new Set(lines.map((line) => /^ {2}--\S+( \S+)? +/.exec(line)?.[0].length)).size).to.equal(1);
  });
});
