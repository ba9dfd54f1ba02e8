import { reasonOf } from './abort.js';

/**
 * A bound on how many things happen at once; those beyond it wait their turn, first come, first served.
 */
export class Slots {
  readonly #size: number;
  readonly #waiting = new Set<() => void>();
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
      const grant = (): void => {
        signal?.removeEventListener('abort', leave);
        this.#taken += 1;
        resolve(this.#giveBackOnce());
      };
      const leave = (): void => {
        this.#waiting.delete(grant);
        if (signal) reject(reasonOf(signal));
      };
      if (this.#taken < this.#size) {
        grant();
        return;
      }
      this.#waiting.add(grant);
      signal?.addEventListener('abort', leave, { once: true });
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
        next();
      }
    };
  }
}
