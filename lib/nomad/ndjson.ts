import { StringDecoder } from 'node:string_decoder';

/**
 * Cuts a stream of bytes into lines. Chunks may end anywhere, in the middle of a character too.
 *
 * What is not a whole line yet is kept; `rest` tells it when the stream is over.
 */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8');
  /** Pieces of the unfinished line: joined once, so that a long line in many chunks costs no more than its length. */
  #pieces: string[] = [];

  /** The lines that `chunk` completes, without their ends and without empty ones. */
  push(chunk: Buffer): string[] {
    const [first = '', ...others] = this.#decoder.write(chunk).split('\n');
    this.#pieces.push(first);
    const last = others.pop();
    if (last === undefined) return [];
    const lines = [this.#pieces.join(''), ...others];
    this.#pieces = [last];
    return lines.map((line) => line.trim()).filter((line) => line !== '');
  }

  /** What came after the last line end. */
  rest(): string {
    return (this.#pieces.join('') + this.#decoder.end()).trim();
  }
}
