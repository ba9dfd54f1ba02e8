/**
 * Finds a marker in a stream of chunks whose borders may fall anywhere in it.
 *
 * Bytes are held back only while they may be the beginning of the marker, hence never more than its length less one.
 */
export class MarkerScanner {
  readonly #marker: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(marker: Buffer) {
    this.#marker = marker;
  }

  /** What precedes the marker as far as that is certain, and what follows it once it was found. */
  push(chunk: Buffer): { readonly before: Buffer; readonly after: Buffer | undefined } {
    const data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const at = data.indexOf(this.#marker);
    if (at >= 0) {
      this.#held = Buffer.alloc(0);
      return { before: data.subarray(0, at), after: data.subarray(at + this.#marker.length) };
    }
    const certain = this.#firstPossible(data);
    // A copy, so that a few bytes do not keep a large chunk alive.
    this.#held = Buffer.from(data.subarray(certain));
    return { before: data.subarray(0, certain), after: undefined };
  }

  /** What was held back; for a stream that ended without the marker. */
  flush(): Buffer {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** Where an unfinished marker may begin at the end of `data`; its length where none does. */
  #firstPossible(data: Buffer): number {
    const start = Math.max(0, data.length - this.#marker.length + 1);
    for (let at = start; at < data.length; at += 1) {
      const length = data.length - at;
      if (data.compare(this.#marker, 0, length, at) === 0) return at;
    }
    return data.length;
  }
}
