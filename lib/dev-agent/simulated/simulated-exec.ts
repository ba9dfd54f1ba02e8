import type { Clock } from '../../base/clock.js';
import type { DriverExec, DriverExecOptions } from '../driver.js';
import type { OutputHandler } from '../process/output.js';
import { Output } from '../process/output.js';
import { findProgram } from './programs.js';

const END_OF_INPUT = 4;
const INTERRUPT = 3;

/** An exec without a process: one of the simulated programs, behind a terminal's translation where one is asked for. */
export class SimulatedExec implements DriverExec {
  readonly exitCode: Promise<number>;
  readonly #tty: boolean;
  readonly #output = new Output();
  readonly #input: Buffer[] = [];
  readonly #ended = new AbortController();
  #inputEnded = false;
  #onInput: () => void = () => undefined;
  #onInputEnd: () => void = () => undefined;
  #onEnd: (code: number) => void = () => undefined;

  constructor({ command, tty }: DriverExecOptions, clock: Clock) {
    this.#tty = tty;
    const cut = new Promise<number>((resolve) => {
      this.#onEnd = resolve;
    });
    const inputEnd = new Promise<void>((resolve) => {
      this.#onInputEnd = resolve;
    });
    const run = this.#run(command, clock).then(async (code) => {
      if (!tty) await inputEnd;
      return code;
    });
    this.exitCode = Promise.race([run, cut]).then(async (code) => {
      this.#ended.abort();
      await this.#output.delivered();
      return code;
    });
  }

  onOutput(handler: OutputHandler): void {
    this.#output.listen(handler);
  }

  write(chunk: Buffer): void {
    if (!this.#tty) {
      this.#feed(chunk);
      return;
    }
    if (chunk.includes(INTERRUPT)) {
      this.#show('stdout', '^C');
      this.end(130);
      return;
    }
    const end = chunk.indexOf(END_OF_INPUT);
    const typed = end < 0 ? chunk : chunk.subarray(0, end);
    if (typed.length > 0) {
      const text = typed.toString('latin1').replace(/\r/g, '\n');
      this.#show('stdout', text);
      this.#feed(Buffer.from(text, 'latin1'));
    }
    if (end >= 0) this.#endInput();
  }

  closeStdin(): void {
    if (!this.#tty) this.#endInput();
  }

  resize(): void {
    // None of the programs asks for the size.
  }

  pause(): void {
    this.#output.pause();
  }

  resume(): void {
    this.#output.resume();
  }

  abandon(): void {
    this.#output.discard();
    this.#endInput();
  }

  /** Ends the program from outside. */
  end(code: number): void {
    this.#onEnd(code);
  }

  async #run(command: readonly string[], clock: Clock): Promise<number> {
    const [file = '', ...args] = command;
    const program = findProgram(file);
    if (!program) return 127;
    return program(args, {
      stdout: (text) => this.#show('stdout', text),
      stderr: (text) => this.#show(this.#tty ? 'stdout' : 'stderr', text),
      read: () => this.#read(),
      sleep: (ms) => sleep(clock, ms, this.#ended.signal),
    });
  }

  #show(stream: 'stdout' | 'stderr', text: string | Buffer): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const shown = this.#tty ? Buffer.from(bytes.toString('latin1').replace(/\n/g, '\r\n'), 'latin1') : bytes;
    this.#output.push(stream, shown);
  }

  #feed(chunk: Buffer): void {
    if (this.#inputEnded) return;
    this.#input.push(chunk);
    this.#onInput();
  }

  #endInput(): void {
    this.#inputEnded = true;
    this.#onInput();
    this.#onInputEnd();
  }

  async #read(): Promise<Buffer | undefined> {
    while (this.#input.length === 0 && !this.#inputEnded) {
      await new Promise<void>((resolve) => {
        this.#onInput = resolve;
      });
    }
    return this.#input.shift();
  }
}

/** Sleeps, also for ever. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (Number.isFinite(ms)) return clock.sleep(ms, signal);
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
