/**
 * A process of the measured system: its output goes to a file, so that nobody spends time on reading it, and a probe in
 * it (probe.mjs) tells what it costs.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '../support/waiting.js';

const PROBE = path.resolve(import.meta.dirname, 'probe.mjs');
const START_MS = 60_000;
const STOP_MS = 15_000;

export interface BenchProcessOptions {
  /** What files of the process are called. */
  readonly name: string;
  /** Folder for its log. */
  readonly folder: string;
  /** Where a processor profile is written at its end, if anywhere. */
  readonly profiles: string | undefined;
  /** Options for Node.js, the program, its arguments. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a process has used since its start. */
export interface Usage {
  readonly cpuMs: number;
  readonly residentBytes: number;
  /** Live objects and buffers. */
  readonly heapBytes: number;
  /** How long its event loop was blocked at most since the last question; undefined where nobody watches. */
  readonly longestBlockMs?: number;
}

export class BenchProcess implements AsyncDisposable {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #log: string;

  constructor({ name, folder, profiles, args, env = {} }: BenchProcessOptions) {
    this.name = name;
    this.#log = path.join(folder, `${name}.log`);
    const profile =
      profiles === undefined
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${profiles}`, `--cpu-prof-name=${name}.cpuprofile`];
    const log = openSync(this.#log, 'w');
    try {
      this.#child = spawn(process.execPath, [...profile, '--expose-gc', '--import', PROBE, ...args], {
        env: { PATH: process.env['PATH'], ...env },
        stdio: ['pipe', log, log, 'ipc'],
      });
    } finally {
      closeSync(log);
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The first group of `pattern` in what it printed. */
  async printed(pattern: RegExp): Promise<string> {
    let text = '';
    await eventually(
      `${pattern} of ${this.name}`,
      () => {
        text = readFileSync(this.#log, 'utf8');
        if (this.#child.exitCode !== null) throw new Error(`${this.name} has ended: ${text.slice(-2000)}`);
        return pattern.test(text);
      },
      START_MS,
    );
    return pattern.exec(text)?.[1] ?? '';
  }

  /** Resident memory right now (Linux). */
  get residentBytes(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1]) * 1024;
  }

  usage(): Promise<Usage> {
    return this.#ask('usage');
  }

  /** The same with all garbage collected. */
  settledUsage(): Promise<Usage> {
    return this.#ask('memory');
  }

  async #ask(question: 'usage' | 'memory'): Promise<Usage> {
    const answer = once(this.#child, 'message', { signal: AbortSignal.timeout(START_MS) });
    this.#child.send(question);
    const [usage] = (await answer) as [Usage];
    return usage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(late);
  }
}
