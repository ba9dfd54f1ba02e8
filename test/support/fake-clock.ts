import type { Clock, Timer } from '../../lib/base/clock.js';
import { sleepOn } from '../../lib/base/clock.js';

interface Armed {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that moves only when a test says so; timers due fire in order of their time. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #armed = new Set<Armed>();

  monotonicMs(): number {
    return this.#now;
  }

  wallMs(): number {
    return 1_800_000_000_000 + this.#now;
  }

  /** Timers that wait now. */
  get armed(): number {
    return this.#armed.size;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const entry: Armed = { at: this.#now + delayMs, callback };
    this.#armed.add(entry);
    return { cancel: () => void this.#armed.delete(entry) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Moves time on and lets everything that this sets off settle, timers armed meanwhile included. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = [...this.#armed].filter((entry) => entry.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#armed.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets promise chains and one turn of the event loop run out. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
