import type { Clock, Timer } from '../base/clock.js';

/**
 * The inactivity timer of one claimed runner: runs while nothing is in progress, begins anew at each end of the last
 * activity, and rests in between. A timeout of 0 means that there is none.
 */
export class InactivityTimer {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #onExpired: () => void;
  #timer: Timer | undefined;
  #activities = 0;
  #stopped = false;

  constructor(clock: Clock, timeoutMs: number, onExpired: () => void) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#onExpired = onExpired;
  }

  /** Starts the time in full; called once, by whoever owns the claim. */
  start(): void {
    this.#arm();
  }

  /** Holds the timer back until the returned function is called; later calls of that do nothing. */
  begin(): () => void {
    this.#activities += 1;
    this.#timer?.cancel();
    this.#timer = undefined;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#activities -= 1;
      if (this.#activities === 0) this.#arm();
    };
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    if (this.#stopped || this.#timeoutMs === 0) return;
    this.#timer = this.#clock.setTimer(this.#timeoutMs, this.#onExpired);
  }
}
