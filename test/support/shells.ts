import { spawnSync } from 'node:child_process';

/** The POSIX shells of this machine; the scripts of lib/shell have to run in each. */
export const SHELLS: readonly (readonly string[])[] = [
  ['dash'],
  ['bash', '--posix'],
  ['busybox', 'sh'],
].filter(([program = '', ...rest]) => spawnSync(program, [...rest, '-c', 'exit 0']).status === 0);

export const isRoot = process.getuid?.() === 0;

/** Runs a script in a shell and returns what it printed. */
export function runShell(shell: readonly string[], script: string, input = ''): string {
  const [program = '', ...rest] = shell;
  const { stdout } = spawnSync(program, [...rest, '-c', script], { input, maxBuffer: 2 ** 28 });
  return stdout.toString();
}
