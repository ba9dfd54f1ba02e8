import type { Clock, Timer } from '../base/clock.js';

export interface WatchdogOptions {
  readonly clock: Clock;
  readonly limitMs: number;
  /** Called once, when nothing came for the limit. */
  readonly onSilent: () => void;
}

/** Tells when something was silent for too long. Touching it costs no timer. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  #lastMs = 0;
  #timer: Timer | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** Begins to count, anew where it already did. */
  start(): void {
    this.stop();
    this.touch();
    this.#arm(this.#options.limitMs);
  }

  /** Something came. */
  touch(): void {
    this.#lastMs = this.#options.clock.monotonicMs();
  }

  /** Counts no more, until started again. */
  stop(): void {
    this.#timer?.cancel();
  }

  #arm(delayMs: number): void {
    const { clock, limitMs, onSilent } = this.#options;
    this.#timer = clock.setTimer(delayMs, () => {
      const silentMs = clock.monotonicMs() - this.#lastMs;
      if (silentMs < limitMs) this.#arm(limitMs - silentMs);
      else onSilent();
    });
  }
}
