import type { Randomness } from '../../base/ids.js';
import type { TaskExit } from '../driver.js';
import type { JobType, RestartPolicy } from '../state/records.js';

/** What becomes of a task that ended. */
export type RestartDecision =
  | { readonly kind: 'restart'; readonly delayNs: number; readonly reason: string }
  | { readonly kind: 'fail'; readonly reason: string }
  | { readonly kind: 'complete' };

/** How much a delay is stretched at most, at random, so that many tasks do not restart together. */
const JITTER = 0.25;

/** Counts the restarts of one task against its policy. */
export class RestartTracker {
  readonly #policy: RestartPolicy;
  readonly #type: JobType;
  readonly #randomness: Randomness;
  #count = 0;
  #intervalStartNs = 0;

  constructor(policy: RestartPolicy, type: JobType, randomness: Randomness) {
    this.#policy = policy;
    this.#type = type;
    this.#randomness = randomness;
  }

  /** Decides about a task that ended by itself; `exit` is undefined where it could not be started. */
  decide(exit: TaskExit | undefined, nowNs: number): RestartDecision {
    if (exit?.exitCode === 0 && exit.signal === 0 && this.#type === 'batch') return { kind: 'complete' };
    const { Attempts, Interval, Mode, Delay } = this.#policy;
    if (Attempts === 0) return { kind: 'fail', reason: 'Policy allows no restarts' };
    if (this.#count === 0 || nowNs > this.#intervalStartNs + Interval) {
      this.#count = 0;
      this.#intervalStartNs = nowNs;
    }
    this.#count += 1;
    if (this.#count <= Attempts) {
      const delayNs = Math.floor(Delay * (1 + JITTER * this.#randomness.random()));
      return { kind: 'restart', delayNs, reason: 'Restart within policy' };
    }
    if (Mode === 'fail') {
      const reason = `Exceeded allowed attempts ${Attempts} in interval ${goHours(Interval)} and mode is "fail"`;
      return { kind: 'fail', reason };
    }
    return {
      kind: 'restart',
      delayNs: Math.max(0, this.#intervalStartNs + Interval - nowNs),
      reason: 'Exceeded allowed attempts, applying a delay',
    };
  }
}

/** An interval as Go prints it: `1h0m0s`, `30m0s`, `45s`. */
function goHours(ns: number): string {
  const seconds = ns / 1e9;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = `${Number((seconds % 60).toFixed(9))}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}
