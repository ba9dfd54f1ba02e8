/**
 * Takes the long texts out of a JSON body while it arrives, so that files of any size pass through in bounded memory.
 *
 *   {"copy":[{"path":"a","content":"AAAA…60 MB…"}]}   ──▶   skeleton {"copy":[{"path":"a","content":"<key>:0"}]}
 *                                                           long text 0: bytes 35…62914595 of the body
 *
 * Only the borders of texts are found here, which takes two states; the skeleton is parsed by JSON.parse and validated
 * like any body, so nothing hostile is interpreted by hand. A long text stays where it is in the raw body, which the
 * caller keeps on disk, and is named in the skeleton by a key that the client cannot know.
 *
 * Invariant: the skeleton is at most `limitBytes` long, whatever comes.
 */
export interface LongText {
  /** Where its bytes are in the body, quotes not included. */
  readonly start: number;
  readonly end: number;
}

export interface SplitJsonOptions {
  /** Unguessable; begins each placeholder. */
  readonly key: string;
  /** Texts longer than this are taken out. */
  readonly longerThanBytes: number;
  readonly limitBytes: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class SplitJson {
  readonly #options: SplitJsonOptions;
  readonly #pieces: Buffer[] = [];
  readonly #long: LongText[] = [];
  #skeletonBytes = 0;
  #position = 0;
  /** Where the text that is being read began; undefined outside of texts. */
  #textStart: number | undefined;
  /** The text's bytes so far, while it is still short. */
  #text: Buffer[] = [];
  #textBytes = 0;
  #escaped = false;
  /** The next byte is the quote that ended a text. */
  #closing = false;

  constructor(options: SplitJsonOptions) {
    this.#options = options;
  }

  /** False once the skeleton is over its limit; the rest of the body need not be pushed then. */
  push(chunk: Buffer): boolean {
    let index = 0;
    while (index < chunk.length) {
      index = this.#textStart === undefined ? this.#outside(chunk, index) : this.#inside(chunk, index);
    }
    this.#position += chunk.length;
    return this.#skeletonBytes <= this.#options.limitBytes;
  }

  /** The skeleton, and the long texts in the order of their placeholders. */
  end(): { readonly skeleton: Buffer; readonly long: readonly LongText[] } {
    this.#keep(...this.#text.splice(0));
    return { skeleton: Buffer.concat(this.#pieces), long: this.#long };
  }

  placeholder(index: number): string {
    return `${this.#options.key}:${index}`;
  }

  #outside(chunk: Buffer, from: number): number {
    const quote = chunk.indexOf(QUOTE, this.#closing ? from + 1 : from);
    this.#closing = false;
    if (quote < 0) {
      this.#keep(Buffer.from(chunk.subarray(from)));
      return chunk.length;
    }
    this.#keep(Buffer.from(chunk.subarray(from, quote + 1)));
    this.#textStart = this.#position + quote + 1;
    return quote + 1;
  }

  #inside(chunk: Buffer, from: number): number {
    let at = from;
    let quote = -1;
    for (;;) {
      if (this.#escaped && at < chunk.length) {
        this.#escaped = false;
        at += 1;
      }
      if (quote < at) quote = chunk.indexOf(QUOTE, at);
      const end = quote < 0 ? chunk.length : quote;
      const backslash = chunk.subarray(at, end).indexOf(BACKSLASH);
      if (backslash >= 0) {
        this.#escaped = true;
        at += backslash + 1;
      } else {
        this.#take(chunk.subarray(from, end));
        if (quote < 0) return chunk.length;
        this.#endText(this.#position + quote);
        return quote;
      }
    }
  }

  /** Keeps a text while it may still be a short one. */
  #take(bytes: Buffer): void {
    if (this.#textBytes <= this.#options.longerThanBytes) this.#text.push(Buffer.from(bytes));
    this.#textBytes += bytes.length;
  }

  #endText(end: number): void {
    const start = this.#textStart ?? end;
    if (end - start > this.#options.longerThanBytes) {
      this.#keep(Buffer.from(this.placeholder(this.#long.length)));
      this.#long.push({ start, end });
    } else {
      this.#keep(...this.#text);
    }
    this.#text = [];
    this.#textBytes = 0;
    this.#textStart = undefined;
    this.#closing = true;
  }

  #keep(...pieces: Buffer[]): void {
    for (const piece of pieces) {
      this.#skeletonBytes += piece.length;
      if (this.#skeletonBytes <= this.#options.limitBytes) this.#pieces.push(piece);
    }
  }
}
