import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from './waiting.js';

const root = path.resolve(import.meta.dirname, '../..');

/** The command line as a process of its own. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const own = Object.entries(process.env).filter(([name]) => !/^(SERAI|NOMAD)_/.test(name));
    this.#child = spawn(process.execPath, ['--import', 'tsx', path.join(root, 'lib/main.ts'), ...args], {
      cwd: root,
      env: { ...Object.fromEntries(own), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('the program could not be started');
    return pid;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The first group of `pattern` in what it printed, once that is there. */
  async printed(pattern: RegExp, timeoutMs = 30_000): Promise<string> {
    const match = (): RegExpExecArray | null => pattern.exec(this.stdout + this.stderr);
    await eventually(
      `${String(pattern)} in\n${this.stdout}${this.stderr}`,
      () => match() !== null || this.#hasEnded,
      timeoutMs,
    );
    const found = match();
    if (!found) throw new Error(`ended without ${String(pattern)}:\n${this.stdout}${this.stderr}`);
    return found[1] ?? '';
  }

  /** The exit code, or the name of the signal. */
  async ended(): Promise<number | string | null> {
    if (!this.#hasEnded) await once(this.#child, 'close');
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasEnded) this.kill('SIGKILL');
    await this.ended();
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/** Process ids of all that descend from `pid`, as /proc tells. */
export function descendantsOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children.map(Number).flatMap((child) => [child, ...descendantsOf(child)]);
  } catch {
    return []; // it has ended
  }
}

/** True while a process is there and is no zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** The command line of a process; empty where it is gone. */
export function commandLineOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
