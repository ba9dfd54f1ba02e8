import { reasonOf } from './abort.js';

/** What somebody holds of a budget. */
export interface Share {
  /** Gives back what is more than `amount`. */
  shrinkTo(amount: number): void;
  /** Gives back all of it. May be called more than once. */
  release(): void;
}

interface Waiter {
  readonly amount: number;
  readonly grant: () => void;
}

/**
 * A bound on the sum of what is held at once. Who does not fit waits, first come, first served: a large share is not
 * overtaken for ever by small ones. All that somebody needs is taken at once, so nobody waits for what others hold
 * while they wait themselves.
 */
export class Budget {
  readonly #size: number;
  readonly #waiting = new Set<Waiter>();
  #held = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves once `amount` fits; more than the whole budget counts as the whole. Rejects with the signal's reason when it
   * aborts first.
   */
  take(amount: number, signal: AbortSignal): Promise<Share> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(reasonOf(signal));
        return;
      }
      const wanted = Math.min(amount, this.#size);
      const leave = (): void => {
        this.#waiting.delete(waiter);
        this.#grantNext(); // one behind it may fit
        reject(reasonOf(signal));
      };
      const grant = (): void => {
        signal.removeEventListener('abort', leave);
        this.#held += wanted;
        resolve(this.#share(wanted));
      };
      const waiter = { amount: wanted, grant };
      this.#waiting.add(waiter);
      signal.addEventListener('abort', leave, { once: true });
      this.#grantNext();
    });
  }

  #grantNext(): void {
    for (const waiter of this.#waiting) {
      if (this.#held + waiter.amount > this.#size) return;
      this.#waiting.delete(waiter);
      waiter.grant();
    }
  }

  #share(amount: number): Share {
    let left = amount;
    const shrinkTo = (next: number): void => {
      if (next >= left) return;
      this.#held -= left - next;
      left = next;
      this.#grantNext();
    };
    return { shrinkTo, release: () => shrinkTo(0) };
  }
}
