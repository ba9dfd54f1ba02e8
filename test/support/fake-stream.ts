import type { NomadEvent } from '../../lib/nomad/model.js';

/** One reader of the event stream of a fake. */
export class FakeStream implements AsyncIterableIterator<readonly NomadEvent[]> {
  readonly #queue: (readonly NomadEvent[])[] = [];
  readonly #onEnd: () => void;
  #failure: unknown;
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(signal: AbortSignal, onEnd: () => void) {
    this.#onEnd = onEnd;
    const close = (): void => {
      this.#ended = true;
      onEnd();
      this.#wake();
    };
    if (signal.aborted) close();
    else signal.addEventListener('abort', close, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(batch: readonly NomadEvent[]): void {
    this.#queue.push(batch);
    this.#wake();
  }

  fail(error: unknown): void {
    this.#failure = error;
    this.#onEnd();
    this.#wake();
  }

  async next(): Promise<IteratorResult<readonly NomadEvent[]>> {
    for (;;) {
      const batch = this.#queue.shift();
      if (batch) return { done: false, value: batch };
      if (this.#ended) return { done: true, value: undefined };
      if (this.#failure !== undefined)
        throw this.#failure instanceof Error ? this.#failure : new Error('failed');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  return(): Promise<IteratorResult<readonly NomadEvent[]>> {
    this.#ended = true;
    this.#onEnd();
    return Promise.resolve({ done: true, value: undefined });
  }
}
