import type { Clock } from './clock.js';

export interface RateLimitOptions {
  readonly perSecond: number;
  /** How many may come at once after a while without any. */
  readonly burst: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * A bound on how often something happens: a bucket that holds `burst` permits and fills at a steady rate. Kept as the one
 * moment at which the bucket will be full again.
 */
export class RateLimit {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** In which one permit comes. */
  readonly #intervalMs: number;
  /** In which all but one come. */
  readonly #toleranceMs: number;
  #fullAtMs: number;

  constructor({ perSecond, burst, clock }: RateLimitOptions) {
    this.#clock = clock;
    this.#intervalMs = 1000 / perSecond;
    this.#toleranceMs = (burst - 1) * this.#intervalMs;
    this.#fullAtMs = clock.monotonicMs();
  }

  /** Takes a permit and returns 0; or takes none and returns for how many milliseconds there will be none. */
  take(): number {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = Math.max(this.#fullAtMs, nowMs);
    const waitMs = fullAtMs - nowMs - this.#toleranceMs;
    if (waitMs > 0) return waitMs;
    this.#fullAtMs = fullAtMs + this.#intervalMs;
    return 0;
  }
}
