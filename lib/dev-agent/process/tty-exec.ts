import type { ChildProcess } from 'node:child_process';
import type { DriverExec } from '../driver.js';
import { exitOf } from './exit.js';
import type { OutputHandler } from './output.js';
import { Output } from './output.js';
import type { Pty } from './pty.js';

/** An exec with a terminal. Its end is told once the process has ended and the terminal was read to its end. */
export class TtyExec implements DriverExec {
  readonly exitCode: Promise<number>;
  readonly processEnded: Promise<void>;
  /** Resolves when the terminal is closed. */
  readonly closed: Promise<void>;
  readonly #pty: Pty;
  readonly #output = new Output();
  #isOpen = true;

  /** `exit` is how the process ended, where that is more than the child itself tells. */
  constructor(child: ChildProcess, pty: Pty, exit = exitOf(child)) {
    this.#pty = pty;
    pty.stream.on('data', (chunk: Buffer) => this.#output.push('stdout', chunk));
    this.processEnded = exit.then(() => undefined);
    this.exitCode = this.#end(exit);
    this.closed = this.exitCode.then(() => undefined);
  }

  onOutput(handler: OutputHandler): void {
    this.#output.listen(handler);
  }

  write(chunk: Buffer): void | Promise<void> {
    return this.#isOpen ? this.#pty.input.write(chunk) : undefined;
  }

  closeStdin(): void {
    // A terminal has no end of input but the character 4, which is the client's to send.
  }

  resize(columns: number, rows: number): void {
    if (this.#isOpen && columns > 0 && rows > 0) this.#pty.resize(columns, rows);
  }

  pause(): void {
    this.#output.pause();
    if (this.#isOpen) this.#pty.stream.pause();
  }

  resume(): void {
    this.#output.resume();
    if (this.#isOpen) this.#pty.stream.resume();
  }

  abandon(): void {
    this.#output.discard();
    this.resume();
  }

  taskEnded(): void {
    // The end of the process is the end of the exec.
  }

  dispose(): void {
    if (this.#isOpen) this.#pty.close();
    this.#isOpen = false;
  }

  async #end(exit: Promise<{ exitCode: number }>): Promise<number> {
    const { exitCode } = await exit;
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#output.push('stdout', this.#pty.finish());
    }
    await this.#output.delivered();
    this.#output.discard();
    return exitCode;
  }
}
