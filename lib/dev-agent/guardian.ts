import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';

/**
 * A shell that outlives this process by a moment: its standard input is a pipe from here that ends however this process
 * ends, and then it cleans up.
 *
 * It runs in a session of its own, so that a Ctrl-C meant for this process does not end it, and ignores the signals that
 * a shell would die of. The script reads lines until the pipe ends and does its work after that.
 */
export class Guardian {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(script: string, args: readonly string[]) {
    this.#child = spawn('/bin/sh', ['-c', `trap '' HUP INT QUIT TERM\n${script}`, 'guardian', ...args], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      detached: true,
    });
    // Whoever kills a guardian wants nothing to be guarded; there is nobody to tell any more.
    this.#child.stdin?.on('error', () => undefined);
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.once('error', () => resolve());
    });
  }

  tell(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Lets it do its work now; resolves when it has ended. */
  stop(): Promise<void> {
    this.#child.stdin?.end();
    return this.#ended;
  }
}

/** Removes a folder once this process has ended; again after a moment, for what was still being written. */
export function guardFolder(folder: string): Guardian {
  const script = `
while read -r line; do :; done
for delay in 0 1 1; do
  rm -rf -- "$1" && [ ! -e "$1" ] && exit
  sleep "$delay"
done
`;
  return new Guardian(script, [folder]);
}
