/**
 * Output on its way to the one who listens: kept while nobody does or while it is paused, and thrown away once nobody
 * will.
 */
export type OutputHandler = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

export class Output {
  readonly #waiting: { stream: 'stdout' | 'stderr'; chunk: Buffer }[] = [];
  #handler: OutputHandler | undefined;
  #state: 'flowing' | 'paused' | 'discarded' = 'flowing';
  #onEmpty: (() => void) | undefined;
  #onResume: (() => void) | undefined;

  listen(handler: OutputHandler): void {
    this.#handler = handler;
    this.#flush();
  }

  push(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    if (this.#state === 'discarded' || chunk.length === 0) return;
    if (this.#handler && this.#state === 'flowing') this.#handler(stream, chunk);
    else this.#waiting.push({ stream, chunk });
  }

  get isPaused(): boolean {
    return this.#state === 'paused';
  }

  pause(): void {
    if (this.#state === 'flowing') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state === 'paused') this.#state = 'flowing';
    this.#onResume?.();
    this.#onResume = undefined;
    this.#flush();
  }

  /** Resolves when it is not paused (any more). */
  resumed(): Promise<void> {
    if (!this.isPaused) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onResume = resolve;
    });
  }

  /** Nobody listens any more: what waits and what comes is dropped. */
  discard(): void {
    this.#state = 'discarded';
    this.#waiting.length = 0;
    this.#onResume?.();
    this.#onResume = undefined;
    this.#settle();
  }

  /** Resolves once everything that was pushed is delivered or dropped. */
  delivered(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#settle();
    });
  }

  #flush(): void {
    while (this.#handler && this.#state === 'flowing') {
      const next = this.#waiting.shift();
      if (!next) break;
      this.#handler(next.stream, next.chunk);
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#waiting.length > 0) return;
    this.#onEmpty?.();
    this.#onEmpty = undefined;
  }
}
