const NOTHING = Buffer.alloc(0);

/**
 * Finds a marker in a stream of chunks whose borders may fall anywhere in it.
 *
 * Bytes are held back only while they may be the beginning of the marker, hence never more than its length less one.
 */
export class MarkerScanner {
  readonly #marker: Buffer;
  readonly #first: number;
  #held: Buffer = NOTHING;

  constructor(marker: Buffer) {
    this.#marker = marker;
    this.#first = marker[0] ?? 0;
  }

  /** What precedes the marker as far as that is certain, and what follows it once it was found. */
  push(chunk: Buffer): { readonly before: Buffer; readonly after: Buffer | undefined } {
    const data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const at = data.indexOf(this.#marker);
    if (at >= 0) {
      this.#held = NOTHING;
      return { before: data.subarray(0, at), after: data.subarray(at + this.#marker.length) };
    }
    const certain = this.#firstPossible(data);
    // A copy, so that a few bytes do not keep a large chunk alive.
    this.#held = certain === data.length ? NOTHING : Buffer.from(data.subarray(certain));
    return { before: data.subarray(0, certain), after: undefined };
  }

  /** What was held back; for a stream that ended without the marker. */
  flush(): Buffer {
    const held = this.#held;
    this.#held = NOTHING;
    return held;
  }

  /** Where an unfinished marker may begin at the end of `data`; its length where none does. */
  #firstPossible(data: Buffer): number {
    const start = Math.max(0, data.length - this.#marker.length + 1);
    for (let at = this.#nextBeginning(data, start); at >= 0; at = this.#nextBeginning(data, at + 1)) {
      const length = data.length - at;
      if (data.compare(this.#marker, 0, length, at) === 0) return at;
    }
    return data.length;
  }

  /** Most output has no such byte, so one search instead of a comparison at each place. */
  #nextBeginning(data: Buffer, from: number): number {
    return data.indexOf(this.#first, from);
  }
}
