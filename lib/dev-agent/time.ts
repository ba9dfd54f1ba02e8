import type { Clock } from '../base/clock.js';

/** One moment in the two forms that Nomad writes. */
export interface Moment {
  /** Nanoseconds since 1970, as exact as a number can be. */
  readonly ns: number;
  readonly rfc3339: string;
}

const NS_PER_MS = 1_000_000;

export function msToNs(ms: number): number {
  return ms * NS_PER_MS;
}

export function nsToMs(ns: number): number {
  return ns / NS_PER_MS;
}

/**
 * Wall-clock moments that never repeat: clients compare start times for equality, and two starts may fall into one
 * millisecond. Within a millisecond the digits below it count up.
 */
export class Timestamps {
  readonly #clock: Clock;
  #lastMs = 0;
  #sequence = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): Moment {
    const ms = Math.max(Math.floor(this.#clock.wallMs()), this.#lastMs);
    this.#sequence = ms === this.#lastMs ? this.#sequence + 1 : 0;
    this.#lastMs = ms;
    // Microseconds, because a number of nanoseconds since 1970 is only exact to about 256 of them.
    const micros = this.#sequence % 1000;
    const iso = new Date(ms).toISOString().slice(0, -1);
    return {
      ns: msToNs(ms) + micros * 1000,
      rfc3339: `${iso}${String(micros).padStart(3, '0')}${String(Math.floor(this.#sequence / 1000) % 1000).padStart(3, '0')}Z`,
    };
  }
}
