/** The longest line that a runner can make us keep, in bytes. */
const LIMIT = 64 * 1024;

/**
 * Cuts a stream into lines. What exceeds the limit without a line break is dropped: our own lines are short, and
 * anything else is noise.
 */
export class LineReader {
  readonly #onLine: (line: string) => void;
  #rest = '';

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(bytes: Buffer): void {
    const lines = (this.#rest + bytes.toString('latin1')).split('\n');
    this.#rest = (lines.pop() ?? '').slice(-LIMIT);
    for (const line of lines) this.#onLine(Buffer.from(line, 'latin1').toString());
  }
}
