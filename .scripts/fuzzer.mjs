/**
 * Installs schemathesis, which test/integration/fuzz uses, into a virtual environment in the user's cache folder, and
 * prints its path. With --find nothing is installed: exit code 1 where it is not there.
 *
 * It needs python3 with venv (on Debian: python3-venv).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

const VERSION = '4.32.5';
const cache = process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache');
const folder = path.join(cache, 'serai', `schemathesis-${VERSION}`);
const program = path.join(folder, 'bin', 'schemathesis');

function works() {
  return existsSync(program) && spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2] });
  if (status === 0) return;
  console.error(`serai: ${command} failed${error ? `: ${error.message}` : ` with exit code ${status}`}`);
  process.exit(1);
}

if (!works()) {
  if (process.argv.includes('--find')) process.exit(1);
  console.error('serai: installing schemathesis …');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run('python3', ['-m', 'venv', folder]);
  run(path.join(folder, 'bin', 'pip'), [
    'install',
    '--quiet',
    '--disable-pip-version-check',
    `schemathesis==${VERSION}`,
  ]);
}
console.log(program);
