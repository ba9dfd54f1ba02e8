import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import { runCli } from '../../lib/cli/cli.js';
import { packageVersion } from '../../lib/config/version.js';

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const told = { stdout: '', stderr: '' };
  const code = await runCli(args, {
    env: {},
    cwd: '/',
    program: '/nowhere/main.js',
    stdout: { write: (text) => (told.stdout += text) },
    stderr: { write: (text) => (told.stderr += text) },
    signals: new EventEmitter(),
  });
  return { code, ...told };
}

describe('runCli', () => {
  it('tells its version, its commands, and the flags of each', async () => {
    expect(await run('--version')).to.deep.equal({ code: 0, stdout: `${packageVersion()}\n`, stderr: '' });
    const help = await run('--help');
    expect(help.code).to.equal(0);
    expect(help.stdout).to.match(
      /^usage: serai COMMAND[^]*\n {2}start {3}[^]*\n {2}serve {3}[^]*\n {2}agent {3}/,
    );
    expect((await run('serve', '--help')).stdout).to.contain('--set KEY=VALUE');
    expect((await run('start', '--help')).stdout).to.contain('--once');
    expect((await run('agent', '--help')).stdout).to.contain('--driver NAME');
  });

  const refused: readonly (readonly [string[], number, string])[] = [
    [['strat'], 2, 'there is no command strat; did you mean start?'],
    [['__proto__'], 2, 'there is no command __proto__'],
    [['serve', '--prot', '1'], 2, 'there is no flag --prot; did you mean --port?'],
    [['serve', 'now'], 2, 'now is not expected here'],
    [['start', '--pool', 'many'], 2, '--pool takes the number of idle runners, not "many"'],
    [['agent', '--prot', '1'], 2, '--prot'],
    [
      ['start', '--set', 'nomad.addresses=http://127.0.0.1:1', '--driver', 'process'],
      2,
      '--driver is for the',
    ],
    [
      ['serve', '--port', '99999', '--log-level', 'loud'],
      1,
      '--port: 99999 is not an integer from 0 to 65535',
    ],
    [['serve', '--host', '0.0.0.0'], 1, 'server.host: "0.0.0.0" is not a loopback address'],
  ];
  for (const [args, code, text] of refused) {
    it(`refuses ${args.join(' ')}`, async () => {
      const told = await run(...args);
      expect(told.code).to.equal(code);
      expect(told.stderr).to.contain(text);
      expect(told.stderr).not.to.match(/^ {4}at /m);
    });
  }

  it('shows its usage, and fails, where it is told nothing', async () => {
    const told = await run();
    expect([told.code, told.stdout.slice(0, 6)]).to.deep.equal([2, 'usage:']);
  });
});
