import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { feed, script, scriptReader } from '../../lib/shell/script.js';
import { eachShell } from '../support/shells.js';

function readScript(shell: readonly string[], input: Buffer): string {
  const [program = '', ...rest] = [...shell, ...scriptReader().slice(1)];
  return spawnSync(program, rest, { input }).stdout.toString();
}

describe('scripts over standard input', () => {
  it('are sent without comments, blank lines and indentation', () => {
    expect(script('\n  # why\n  if a; then\n    b # c\n  fi\n')).to.equal('if a; then\nb # c\nfi\n');
  });

  eachShell((shell) => {
    it(`leave what follows them to the script itself in ${shell[0]}`, () => {
      const text = 'printf "[%s]" "$serai_s" >/dev/null\nread -r x; printf "%s|" "$x"; cat\n';
      expect(readScript(shell, Buffer.concat([feed(text), Buffer.from('first\nrest\\n')]))).to.equal(
        'first|rest\\n',
      );
    });

    it(`are not run in ${shell[0]} where their end did not come`, () => {
      expect(readScript(shell, Buffer.from('echo half\necho the other half'))).to.equal('');
    });
  });
});
