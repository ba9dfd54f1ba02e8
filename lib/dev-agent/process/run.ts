import { spawn } from 'node:child_process';

/** Where programs are looked for, on the host and in sandboxes, whatever the agent's own PATH is. */
export const STANDARD_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The whole environment of the programs that build and enter sandboxes; nothing of the agent's own reaches them. */
export const CLEAN_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: STANDARD_PATH, LC_ALL: 'C' };

/** Runs a program to its end and resolves with its standard output; rejects with what it said when it failed. */
export function run(command: readonly string[]): Promise<Buffer> {
  const [file = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      env: CLEAN_ENVIRONMENT,
    });
    const output: Buffer[] = [];
    const complaints: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(Buffer.concat(output));
      else reject(new Error(firstLine(Buffer.concat(complaints).toString()) || `${file} failed (${code})`));
    });
  });
}

/** What a program complained of first: the rest mostly follows from it. */
export function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}
