import type { Clock, Timer } from '../base/clock.js';

/** How long after a claim pools are refilled: most clients run their first command within that time. */
const REFILL_DELAY_MS = 25;
/** How long a refill makes way at most, however many claims come. */
const MAX_PAUSE_MS = 75;

export interface ClaimPauseDeps {
  readonly clock: Clock;
  /** Ends every pause. */
  readonly signal: AbortSignal;
  /** Default 25. */
  readonly refillDelayMs?: number | undefined;
}

/**
 * The pause that refills make for claims: what Nomad is asked for meanwhile it would do first, on the time of those who
 * have just claimed.
 */
export class ClaimPause {
  readonly #deps: ClaimPauseDeps;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  /** Runs from the end of the last claim until pools may be refilled. */
  #settling: Timer | undefined;

  constructor(deps: ClaimPauseDeps) {
    this.#deps = deps;
    deps.signal.addEventListener('abort', () => this.#settle(), { once: true });
  }

  /** Runs one claim. */
  async during<T>(claim: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    this.#settling?.cancel();
    this.#settling = undefined;
    try {
      return await claim();
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#settleLater();
    }
  }

  /** Resolves when no claim is under way and the last one is a refill delay ago, or after 75 ms. */
  over(): Promise<void> {
    const { clock, signal } = this.#deps;
    if ((this.#underWay === 0 && !this.#settling) || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = clock.setTimer(MAX_PAUSE_MS, resolve);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #settleLater(): void {
    const { clock, signal, refillDelayMs = REFILL_DELAY_MS } = this.#deps;
    if (refillDelayMs === 0 || signal.aborted) this.#settle();
    else this.#settling = clock.setTimer(refillDelayMs, () => this.#settle());
  }

  #settle(): void {
    this.#settling?.cancel();
    this.#settling = undefined;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
