import { orAbort } from '../base/abort.js';
import { Backoff } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';

export interface PersistentOptions {
  readonly work: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  /** Called once, at the first failure. */
  readonly onTrouble?: (error: unknown) => void;
}

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/**
 * Work that has to succeed in the end: it is tried again, 1 s doubling to 30 s with jitter, until it does or the owner
 * stops. Whoever asks meanwhile has it tried at once and learns how that went.
 */
export class Persistent {
  readonly #options: PersistentOptions;
  readonly #backoff: Backoff;
  #attempt: Promise<void> | undefined;
  #nudge = new AbortController();
  #done = false;

  constructor(options: PersistentOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS, random: options.random });
  }

  /** Tries until it is done. Resolves also when `signal` aborts; rejects never. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#try(signal);
        return;
      } catch (error) {
        if (signal.aborted) return; // the stop itself, not a failure
        if (this.#backoff.attempts === 0) this.#options.onTrouble?.(error);
      }
      this.#nudge = new AbortController();
      const waiting = AbortSignal.any([signal, this.#nudge.signal]);
      await this.#options.clock.sleep(this.#backoff.nextMs(), waiting);
    }
  }

  /** The outcome of the attempt under way, or of one made now; rejects with what failed. */
  async attempt(signal: AbortSignal): Promise<void> {
    await orAbort(this.#try(signal), signal);
    this.#nudge.abort();
  }

  #try(signal: AbortSignal): Promise<void> {
    if (this.#done) return Promise.resolve();
    this.#attempt ??= this.#options
      .work(signal)
      .then(() => {
        this.#done = true;
      })
      .finally(() => {
        this.#attempt = undefined;
      });
    return this.#attempt;
  }
}
