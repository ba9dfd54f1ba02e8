import { spawnSync } from 'node:child_process';
import type { Need } from './needs.js';
import { needs, program } from './needs.js';

const ALL_SHELLS: readonly (readonly string[])[] = [['dash'], ['bash', '--posix'], ['busybox', 'sh']];

/** The POSIX shells of this machine; the scripts of lib/shell have to run in each. */
export const SHELLS = ALL_SHELLS.filter(
  ([name = '', ...rest]) => spawnSync(name, [...rest, '-c', 'exit 0']).status === 0,
);

/** Declares tests for each shell, and in place of those for one that is not there a test that says so. */
export function eachShell(declare: (shell: readonly string[]) => void): void {
  for (const shell of ALL_SHELLS) {
    if (SHELLS.includes(shell)) declare(shell);
    else declareMissing(`runs in ${shell[0]}`, program(shell[0] ?? ''));
  }
}

/** Stands for tests that cannot even be declared without what they need. */
export function declareMissing(title: string, need: Need): void {
  it(title, function () {
    needs(this, need);
  });
}

/** Runs a script in a shell and returns what it printed. */
export function runShell(shell: readonly string[], script: string, input = ''): string {
  const [program = '', ...rest] = shell;
  const { stdout } = spawnSync(program, [...rest, '-c', script], { input, maxBuffer: 2 ** 28 });
  return stdout.toString();
}
