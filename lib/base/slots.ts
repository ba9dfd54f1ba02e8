import { reasonOf } from './abort.js';

/** Those that wait under one signal, and what listens to it on behalf of all. */
interface Watch {
  readonly waiting: Set<Waiting>;
  readonly listener: () => void;
}

interface Waiting {
  readonly grant: () => void;
  readonly leave: () => void;
}

/**
 * A bound on how many things happen at once; those beyond it wait their turn, first come, first served.
 *
 * However many wait under one signal, it has one listener of theirs: a signal looks through all of its listeners for each
 * that is added, and thousands of registrations wait under the same one.
 */
export class Slots {
  readonly #size: number;
  readonly #waiting = new Set<Waiting>();
  readonly #watches = new Map<AbortSignal, Watch>();
  #taken = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves with a function that gives the slot back (once). Rejects with the signal's reason when it aborts first. */
  take(signal?: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(reasonOf(signal));
        return;
      }
      const waiting: Waiting = {
        grant: () => {
          this.#unwatch(waiting, signal);
          this.#taken += 1;
          resolve(this.#giveBackOnce());
        },
        leave: () => {
          this.#waiting.delete(waiting);
          if (signal) reject(reasonOf(signal));
        },
      };
      if (this.#taken < this.#size) {
        waiting.grant();
        return;
      }
      this.#waiting.add(waiting);
      this.#watch(waiting, signal);
    });
  }

  /** Runs `work` inside a slot. */
  async with<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const giveBack = await this.take(signal);
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  #giveBackOnce(): () => void {
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#taken -= 1;
      const [next] = this.#waiting;
      if (next) {
        this.#waiting.delete(next);
        next.grant();
      }
    };
  }

  #watch(waiting: Waiting, signal: AbortSignal | undefined): void {
    if (!signal) return;
    const known = this.#watches.get(signal);
    if (known) {
      known.waiting.add(waiting);
      return;
    }
    const all = new Set([waiting]);
    const listener = (): void => {
      this.#watches.delete(signal);
      for (const { leave } of all) leave();
    };
    this.#watches.set(signal, { waiting: all, listener });
    signal.addEventListener('abort', listener, { once: true });
  }

  #unwatch(waiting: Waiting, signal: AbortSignal | undefined): void {
    if (!signal) return;
    const watch = this.#watches.get(signal);
    if (!watch?.waiting.delete(waiting) || watch.waiting.size > 0) return;
    this.#watches.delete(signal);
    signal.removeEventListener('abort', watch.listener);
  }
}
