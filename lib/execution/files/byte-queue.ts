/**
 * Bytes between a producer that is pushed and a consumer that pulls. The producer is told to pause while too much waits,
 * so memory is bounded by the bound and what is in flight.
 */
export interface ByteQueueOptions {
  readonly pauseAboveBytes: number;
  readonly pause: () => void;
  readonly resume: () => void;
}

export class ByteQueue implements AsyncIterable<Buffer> {
  readonly #options: ByteQueueOptions;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #paused = false;
  #end: { readonly error: Error | undefined } | undefined;
  #wake: () => void = () => undefined;

  constructor(options: ByteQueueOptions) {
    this.#options = options;
  }

  /** True while the producer was told to pause. */
  get paused(): boolean {
    return this.#paused;
  }

  push(chunk: Buffer): void {
    if (this.#end) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (!this.#paused && this.#bytes > this.#options.pauseAboveBytes) {
      this.#paused = true;
      this.#options.pause();
    }
    this.#wake();
  }

  /** Ends the queue: what waits is still given out, unless an error is to be thrown. Later ends change nothing. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** For one consumer. */
  async *[Symbol.asyncIterator](): AsyncIterator<Buffer> {
    for (;;) {
      if (this.#end?.error) throw this.#end.error;
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#bytes -= chunk.length;
        if (this.#paused && this.#bytes <= this.#options.pauseAboveBytes / 2) {
          this.#paused = false;
          this.#options.resume();
        }
        yield chunk;
      } else if (this.#end) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
