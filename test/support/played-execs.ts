import { settle } from './fake-clock.js';
import { endMarker, startMarker } from '../../lib/shell/frames.js';
import type { ExecOptions, ExecSession } from '../../lib/nomad/api.js';
import type { ExecEnd } from '../../lib/nomad/model.js';
import type { Gate } from './waiting.js';
import { gate } from './waiting.js';

type Handler = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

/** An exec whose other end is played by the test. */
export class PlayedExec implements ExecSession {
  readonly options: ExecOptions;
  readonly end: Promise<ExecEnd>;
  /** All input, as the runner got it. */
  input = '';
  inputClosed = false;
  destroyed = false;
  paused = false;
  readonly sizes: [columns: number, rows: number][] = [];
  #handler: Handler | undefined;
  #kept: [stream: 'stdout' | 'stderr', chunk: Buffer][] = [];
  #resolve: (end: ExecEnd) => void = () => undefined;

  constructor(options: ExecOptions) {
    this.options = options;
    this.end = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  onOutput(handler: Handler): void {
    this.#handler = handler;
    for (const [stream, chunk] of this.#kept.splice(0)) handler(stream, chunk);
  }

  write(chunk: Uint8Array): Promise<void> {
    this.input += Buffer.from(chunk).toString();
    return Promise.resolve();
  }

  closeStdin(): void {
    this.inputClosed = true;
  }

  resize(columns: number, rows: number): void {
    this.sizes.push([columns, rows]);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  destroy(): void {
    this.destroyed = true;
    this.#resolve({ kind: 'closed', code: 1006, reason: 'dropped by this side' });
  }

  /** Sends output of the runner. */
  async say(stream: 'stdout' | 'stderr', data: string | Buffer): Promise<void> {
    const chunk = Buffer.from(data as string);
    if (this.#handler) this.#handler(stream, chunk);
    else this.#kept.push([stream, chunk]);
    await settle();
  }

  async exit(exitCode: number): Promise<void> {
    this.#resolve({ kind: 'exited', exitCode });
    await settle();
  }

  async close(code: number, reason = ''): Promise<void> {
    this.#resolve({ kind: 'closed', code, reason });
    await settle();
  }

  /** The token of the request that the service sent. */
  get token(): string {
    const match = /\n(?:\.\n|#)(\d+) \d+ \d+\n/.exec(this.input);
    if (!match?.[1]) throw new Error('no request was sent');
    return match[1];
  }

  start(): string {
    return startMarker(this.token).toString();
  }

  stop(): string {
    return endMarker(this.token).toString();
  }
}

/** Opens execs that the test plays; an exec for ending processes answers by itself that nothing is left. */
export class PlayedExecs {
  readonly execs: PlayedExec[] = [];
  readonly kills: PlayedExec[] = [];
  /** What an exec for ending processes says; undefined for nothing at all. */
  killResult: string | undefined = 'K 0 0\n';
  /** Set to hold back the opening of the next execs. */
  opening: Gate | undefined;
  failure: Error | undefined;

  async openExec(options: ExecOptions): Promise<ExecSession> {
    options.signal?.throwIfAborted();
    const held = this.opening?.promise;
    if (held) await Promise.race([held, aborted(options.signal)]);
    if (this.failure) throw this.failure;
    const exec = new PlayedExec(options);
    // Only the script for ending processes names the allocation.
    const write = exec.write.bind(exec);
    exec.write = async (chunk) => {
      await write(chunk);
      if (!exec.input.includes('serai_allocation=')) return;
      this.execs.splice(this.execs.indexOf(exec), 1);
      this.kills.push(exec);
      if (this.killResult === undefined) return;
      await exec.say('stdout', this.killResult);
      await exec.exit(0);
    };
    this.execs.push(exec);
    return exec;
  }

  /** The exec of a session without a terminal. */
  pipe(): PlayedExec {
    return this.#find((exec) => !exec.options.tty);
  }

  control(): PlayedExec {
    return this.#find((exec) => !exec.options.tty);
  }

  terminal(): PlayedExec {
    return this.#find((exec) => exec.options.tty);
  }

  /** Holds back openings until the returned gate opens. */
  hold(): Gate {
    this.opening = gate();
    return this.opening;
  }

  #find(condition: (exec: PlayedExec) => boolean): PlayedExec {
    const exec = this.execs.filter(condition).at(-1);
    if (!exec) throw new Error('no such exec was opened');
    return exec;
  }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
