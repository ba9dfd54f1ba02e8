import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { DriverExec } from '../driver.js';
import { exitOf } from './exit.js';
import type { OutputHandler } from './output.js';
import { Output } from './output.js';

/** The agent's ends of the three pipes. */
export interface ExecStreams {
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
}

/**
 * An exec without a terminal: three pipes.
 *
 * Its end is told once the process has ended, its standard input was closed (as Nomad's raw_exec does it) and what it
 * wrote was read. A child that it left behind may hold the pipes open: it does not hold the end back, and its pipes go
 * on being read, into nothing, so that it is not killed by writing.
 */
export class PipeExec implements DriverExec {
  readonly exitCode: Promise<number>;
  /** Resolves when the process has ended. */
  readonly processEnded: Promise<void>;
  /** Resolves when nobody holds the pipes any more. */
  readonly closed: Promise<void>;
  readonly #streams: ExecStreams;
  readonly #output = new Output();
  #inputClosed: () => void = () => undefined;
  #chunks = 0;
  #openStreams = 0;
  #allClosed: () => void = () => undefined;

  /**
   * `streams` are the agent's ends of the pipes; those that Node made unless others are given. `exit` is how the process
   * ended, where that is more than the child itself tells.
   */
  constructor(child: ChildProcess, streams: ExecStreams = child, exit = exitOf(child)) {
    this.#streams = streams;
    const inputClosed = new Promise<void>((resolve) => {
      this.#inputClosed = resolve;
    });
    // A program need not read its input; what it did not want is dropped.
    streams.stdin?.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.#allClosed = resolve;
    });
    this.#read('stdout', streams.stdout);
    this.#read('stderr', streams.stderr);
    this.processEnded = exit.then(() => undefined);
    this.exitCode = this.#end(exit, inputClosed);
  }

  onOutput(handler: OutputHandler): void {
    this.#output.listen(handler);
  }

  write(chunk: Buffer): void | Promise<void> {
    const { stdin } = this.#streams;
    if (!stdin?.writable || stdin.write(chunk)) return;
    return new Promise((resolve) => {
      const settle = (): void => {
        stdin.off('drain', settle);
        stdin.off('close', settle);
        resolve();
      };
      stdin.on('drain', settle);
      stdin.on('close', settle);
    });
  }

  closeStdin(): void {
    this.#streams.stdin?.end();
    this.#inputClosed();
  }

  resize(): void {
    // There is no terminal whose size could change.
  }

  pause(): void {
    this.#output.pause();
    this.#streams.stdout?.pause();
    this.#streams.stderr?.pause();
  }

  resume(): void {
    this.#output.resume();
    this.#streams.stdout?.resume();
    this.#streams.stderr?.resume();
  }

  abandon(): void {
    this.#output.discard();
    this.#inputClosed();
    this.resume();
  }

  /** The task has ended, and with it this exec, whatever its input. */
  taskEnded(): void {
    this.#inputClosed();
  }

  /** Lets go of the pipes; for when nothing of the task is left. */
  dispose(): void {
    this.#streams.stdin?.destroy();
    this.#streams.stdout?.destroy();
    this.#streams.stderr?.destroy();
  }

  #read(name: 'stdout' | 'stderr', stream: Readable | null): void {
    if (!stream) return;
    this.#openStreams += 1;
    stream.on('data', (chunk: Buffer) => {
      this.#chunks += 1;
      this.#output.push(name, chunk);
    });
    stream.on('error', () => undefined); // it closes too, which is what counts
    stream.on('close', () => {
      this.#openStreams -= 1;
      if (this.#openStreams === 0) this.#allClosed();
    });
  }

  async #end(exit: Promise<{ exitCode: number }>, inputClosed: Promise<void>): Promise<number> {
    const { exitCode } = await exit;
    // Input that the process did not read is for nobody, though a child of it may hold the other end.
    this.#streams.stdin?.destroy();
    await inputClosed;
    await this.#drained();
    await this.#output.delivered();
    this.#output.discard();
    return exitCode;
  }

  /**
   * Resolves when the pipes have ended, or when they are not paused and gave nothing for two turns of the event loop:
   * what the process wrote before it ended lies in the kernel, and a turn reads what lies there.
   */
  async #drained(): Promise<void> {
    let quietTurns = 0;
    while (this.#openStreams > 0 && quietTurns < 2) {
      const before = this.#chunks;
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#output.isPaused) await this.#output.resumed();
      quietTurns = this.#chunks === before && !this.#output.isPaused ? quietTurns + 1 : 0;
    }
  }
}
