import { LONGEST_GAP_MS } from './times.js';

/** A look at what Nomad has, in watched time. */
export interface Look {
  /** When it was asked for: what it shows is not older than that. */
  readonly askedMs: number;
  /** When the answer was there: what it shows is not younger than that. */
  readonly answeredMs: number;
}

/**
 * Time during which somebody watched. Silence counts only where it would have been heard: a process that was stopped, or
 * could not reach Nomad, does not take the others for dead when it looks again.
 *
 * Runs never faster than the clock that it is told.
 */
export class WatchedTime {
  #watchedMs = 0;
  #lastMs: number | undefined;

  /** Takes a look that succeeded, in times of the monotonic clock. */
  look(askedAtMs: number, answeredAtMs: number): Look {
    this.#passed(askedAtMs);
    const askedMs = this.#watchedMs;
    this.#passed(answeredAtMs);
    return { askedMs, answeredMs: this.#watchedMs };
  }

  #passed(nowMs: number): void {
    const sinceMs = nowMs - (this.#lastMs ?? nowMs);
    this.#lastMs = nowMs;
    this.#watchedMs += Math.min(sinceMs, LONGEST_GAP_MS);
  }
}
