import type { CliStream } from './io.js';

/** Short lines for people, with one that is written over while something goes on. */
export class Talk {
  readonly #stream: CliStream;
  #progress = '';

  constructor(stream: CliStream) {
    this.#stream = stream;
  }

  /** One line: what it is about, and what there is to say of it. */
  say(about: string, text: string): void {
    this.#endProgress();
    const [first = '', ...rest] = text.split('\n');
    this.#stream.write(`${about.padEnd(10)}${first}\n`);
    for (const line of rest) this.#stream.write(`${' '.repeat(10)}${line}\n`);
  }

  /** A line that the next one replaces on a terminal; elsewhere each new text is a line. */
  progress(about: string, text: string): void {
    const line = `${about.padEnd(10)}${text}`;
    if (line === this.#progress) return;
    if (this.#stream.isTTY) {
      this.#stream.write(`\r${line}${' '.repeat(Math.max(0, this.#progress.length - line.length))}`);
    } else {
      this.#stream.write(`${line}\n`);
    }
    this.#progress = line;
  }

  #endProgress(): void {
    if (this.#progress !== '' && this.#stream.isTTY) this.#stream.write('\n');
    this.#progress = '';
  }
}
