/** Delays that double between two bounds, with jitter, until a success resets them. */
export interface BackoffOptions {
  readonly minMs: number;
  readonly maxMs: number;
  /** Uniform in [0, 1); injected so that tests know the delays. */
  readonly random: () => number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Failures since the last reset. */
  get attempts(): number {
    return this.#attempts;
  }

  /** The delay before the next attempt: between half of the doubled delay and the whole of it. */
  nextMs(): number {
    const { minMs, maxMs, random } = this.#options;
    const full = Math.min(maxMs, minMs * 2 ** Math.min(this.#attempts, 30));
    this.#attempts += 1;
    return full / 2 + (full / 2) * random();
  }

  reset(): void {
    this.#attempts = 0;
  }
}
