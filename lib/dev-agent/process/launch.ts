import type { ChildProcess, StdioOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Starting one process of a task, in a session of its own.
 *
 * Node cannot make a terminal the controlling one, and the descriptors of terminals are inherited by every child. So a
 * shell goes before the program: it closes what it inherited, opens the terminal (which makes it the controlling one of
 * the new session) and replaces itself by the program. Only bash can close descriptors above 9; where there is none,
 * they stay open, which costs descriptors and nothing else.
 */
export interface LaunchOptions {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly stdio: StdioOptions;
  /** Path of the terminal that becomes standard input, output and error; overrides `stdio`. */
  readonly terminal?: string;
}

const BASH = ['/bin/bash', '/usr/bin/bash'].find((file) => existsSync(file));
const HAS_FD_FOLDER = existsSync('/proc/self/fd');

const CLOSE_INHERITED =
  'for fd in /proc/self/fd/*; do fd=${fd##*/}; case $fd in 0|1|2) ;; *) eval "exec $fd>&-" ;; esac; done\n';
const OPEN_TERMINAL = 'exec 0<>"$0" 1>&0 2>&0\n';

/** Starts the process; resolves once it runs. Rejects with a sentence where the command does not exist. */
export function launch({
  command,
  environment,
  folder,
  stdio,
  terminal,
}: LaunchOptions): Promise<ChildProcess> {
  const file = command[0] ?? '';
  const executable = findExecutable(file, environment['PATH'] ?? '', folder);
  const words = file.startsWith('-') ? [executable, ...command.slice(1)] : command;
  const isBash = BASH !== undefined && HAS_FD_FOLDER;
  const script = `${isBash ? CLOSE_INHERITED : ''}${terminal === undefined ? '' : OPEN_TERMINAL}exec "$@"`;
  const shell = isBash ? [BASH, '-p', '-c'] : ['/bin/sh', '-c'];
  const [program = '/bin/sh', ...options] = shell;
  const child = spawn(program, [...options, script, terminal ?? 'task', ...words], {
    cwd: folder,
    env: environment,
    stdio: terminal === undefined ? stdio : 'ignore',
    detached: true,
  });
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child));
    child.once('error', reject);
  });
}

/** The file that a command names, as `execvp` would find it. Throws with the words of Go's exec package. */
export function findExecutable(file: string, searchPath: string, folder: string): string {
  if (file.includes('/')) {
    const absolute = path.resolve(folder, file);
    if (isExecutable(absolute)) return absolute;
    throw new Error(
      existsSync(absolute)
        ? `fork/exec ${file}: permission denied`
        : `fork/exec ${file}: no such file or directory`,
    );
  }
  for (const entry of searchPath.split(':')) {
    const candidate = path.resolve(folder, entry, file);
    if (file !== '' && isExecutable(candidate)) return candidate;
  }
  throw new Error(`exec: ${JSON.stringify(file)}: executable file not found in $PATH`);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false; // missing, or not for us: either way it is not what the command means
  }
}
