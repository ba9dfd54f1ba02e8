import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { IPty } from '@lydell/node-pty';
import { spawn as spawnPty } from '@lydell/node-pty';
import type { ExecOptions, ExecSession } from '../../lib/nomad/api.js';
import type { ExecEnd } from '../../lib/nomad/model.js';
import { SHELLS } from './shells.js';

type Handler = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

/** Keeps output for a handler that is not set yet. */
class Outlet {
  #handler: Handler | undefined;
  #kept: [stream: 'stdout' | 'stderr', chunk: Buffer][] = [];

  set(handler: Handler): void {
    this.#handler = handler;
    for (const [stream, chunk] of this.#kept.splice(0)) handler(stream, chunk);
  }

  readonly give: Handler = (stream, chunk) => {
    if (this.#handler) this.#handler(stream, chunk);
    else this.#kept.push([stream, chunk]);
  };
}

/** Gives a command pipes, where Node has only sockets to give. What stands behind them is no child of the command. */
const PIPES = SHELLS.some(([program]) => program === 'bash')
  ? ['bash', '-c', 'exec "$@" > >(cat <&0 &) 2> >(cat <&0 >&2 &) 62>&- 63>&-', 'pipes']
  : [];

/** A process on this machine behind a pipe. */
class LocalPipe implements ExecSession {
  readonly end: Promise<ExecEnd>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #outlet = new Outlet();
  #destroyed: () => void = () => undefined;

  constructor(command: readonly string[], env: NodeJS.ProcessEnv, cwd: string) {
    const [program = '', ...rest] = [...PIPES, ...command];
    this.#child = spawn(program, rest, { env, cwd, detached: true });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdout.on('data', (chunk: Buffer) => this.#outlet.give('stdout', chunk));
    this.#child.stderr.on('data', (chunk: Buffer) => this.#outlet.give('stderr', chunk));
    this.end = new Promise((resolve) => {
      this.#destroyed = () => resolve({ kind: 'closed', code: 1006, reason: 'dropped by this side' });
      // As raw_exec: an exec whose input is open does not end.
      this.#child.on('close', (code) => resolve({ kind: 'exited', exitCode: code ?? 137 }));
    });
  }

  onOutput(handler: Handler): void {
    this.#outlet.set(handler);
  }

  write(chunk: Uint8Array): Promise<void> {
    return new Promise((resolve) => void this.#child.stdin.write(chunk, () => resolve()));
  }

  closeStdin(): void {
    this.#child.stdin.end();
  }

  resize(): void {
    // no terminal
  }

  pause(): void {
    this.#child.stdout.pause();
    this.#child.stderr.pause();
  }

  resume(): void {
    this.#child.stdout.resume();
    this.#child.stderr.resume();
  }

  destroy(): void {
    this.#child.stdin.destroy();
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
    this.#child.unref();
    this.#destroyed();
  }
}

/** A process on this machine behind a terminal. */
class LocalTerminal implements ExecSession {
  readonly end: Promise<ExecEnd>;
  readonly #pty: IPty;
  readonly #outlet = new Outlet();
  #destroyed: () => void = () => undefined;
  #over = false;

  constructor(command: readonly string[], env: NodeJS.ProcessEnv, cwd: string) {
    this.#pty = spawnPty(command[0]!, command.slice(1), { env, cwd, encoding: null, cols: 80, rows: 24 });
    // With no encoding the data are buffers, whatever the type says.
    this.#pty.onData((data: string | Buffer) => this.#outlet.give('stdout', Buffer.from(data as string)));
    this.end = new Promise((resolve) => {
      this.#destroyed = () => resolve({ kind: 'closed', code: 1006, reason: 'dropped by this side' });
      this.#pty.onExit(({ exitCode, signal }) => {
        this.#over = true;
        resolve({ kind: 'exited', exitCode: signal ? 128 + signal : exitCode });
      });
    });
  }

  onOutput(handler: Handler): void {
    this.#outlet.set(handler);
  }

  write(chunk: Uint8Array): Promise<void> {
    if (!this.#over) this.#pty.write(Buffer.from(chunk) as Buffer & string);
    return Promise.resolve();
  }

  closeStdin(): void {
    // A terminal has no end of input but a byte.
  }

  resize(columns: number, rows: number): void {
    if (!this.#over) this.#pty.resize(columns, rows);
  }

  pause(): void {
    this.#pty.pause();
  }

  resume(): void {
    this.#pty.resume();
  }

  destroy(): void {
    this.#destroyed();
  }
}

export interface LocalExecsOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** What `sh` is; the machine's own by default. */
  readonly shell?: readonly string[];
  /** The working directory of the image; the tests' own by default. */
  readonly cwd?: string;
}

/** Opens execs as processes of this machine, with the variables of a Nomad task. */
export class LocalExecs {
  readonly hasPipes = PIPES.length > 0;
  readonly opened: ExecSession[] = [];
  readonly options: ExecOptions[] = [];
  readonly #options: LocalExecsOptions;

  constructor(options: LocalExecsOptions = {}) {
    this.#options = options;
  }

  openExec(options: ExecOptions): Promise<ExecSession> {
    const env = {
      PATH: process.env['PATH'],
      HOME: '/root',
      ...this.#options.env,
      NOMAD_ALLOC_ID: options.allocationId,
      NOMAD_META_text: "a'b\nNOMAD_c=d",
    };
    const [program, ...rest] = options.command;
    const shell = program === 'sh' ? (this.#options.shell ?? ['sh']) : [program!];
    const command = [...shell, ...rest];
    const cwd = this.#options.cwd ?? process.cwd();
    const exec = options.tty ? new LocalTerminal(command, env, cwd) : new LocalPipe(command, env, cwd);
    this.options.push(options);
    this.opened.push(exec);
    return Promise.resolve(exec);
  }
}
