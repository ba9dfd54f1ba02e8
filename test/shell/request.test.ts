import { expect } from 'chai';
import fc from 'fast-check';
import type { CommandRequest } from '../../lib/shell/request.js';
import { formatRequest } from '../../lib/shell/request.js';
import { RUN_COMMAND } from '../../lib/shell/run-command.js';
import { eachShell, runShell } from '../support/shells.js';

const REQUEST: CommandRequest = {
  token: '0042',
  id: 'id',
  command: 'true',
  environment: {},
  exported: {},
  workingDirectory: undefined,
  user: { kind: 'privileged' },
  splitStderr: true,
};

/** Reads a request as the scripts do and prints what they then have. */
function receive(shell: readonly string[], request: CommandRequest, print: string): string {
  const script = `${RUN_COMMAND}\nserai_receive && eval "$serai_r" && ${print}`;
  return runShell(shell, script, formatRequest(request).toString());
}

const text = fc.string({ unit: 'binary', maxLength: 200 }).filter((value) => !value.includes('\0'));

describe('formatRequest', () => {
  eachShell((shell) => {
    it(`brings command and variables to ${shell[0]} exactly as they are [B9] [B10]`, () => {
      fc.assert(
        fc.property(text, fc.array(text), (command, values) => {
          const environment = Object.fromEntries(values.map((value, index) => [`V${index}`, value]));
          const printed = receive(
            shell,
            { ...REQUEST, command, environment },
            'printf "%s\\001" "$serai_t" "$serai_c" "$@"',
          );
          // Lone surrogates have no UTF-8 form and become U+FFFD on the way out.
          const sent = Buffer.from(
            ['0042', command, ...values.map((value, index) => `V${index}=${value}`), ''].join('\x01'),
          ).toString();
          expect(printed).to.equal(sent);
        }),
        { numRuns: 25 },
      );
    });
  });

  it('marks a command that is too long for an argument', () => {
    const isLong = (length: number): string =>
      receive(['sh'], { ...REQUEST, command: 'x'.repeat(length) }, 'echo "[$serai_long]${#serai_c}"').trim();
    expect(isLong(100_000)).to.equal('[]100000');
    expect(isLong(100_001)).to.equal('[1]100001');
    expect(isLong(3_000_000)).to.equal('[1]3000000');
  });

  it('keeps a working directory from being read as an option', () => {
    const directory = (workingDirectory: string): string =>
      receive(['sh'], { ...REQUEST, workingDirectory }, 'echo "$serai_cwd"').trim();
    expect(directory('-')).to.equal('./-');
    expect(directory('/a b')).to.equal('/a b');
  });
});
