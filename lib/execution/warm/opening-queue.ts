import type { Slot, WarmRunner } from './warm-runner.js';

export interface OpeningQueueOptions {
  /** Openings at once. */
  readonly parallel: number;
  /** Sessions in all. */
  readonly max: number;
  /** Opens a session in the slot of a runner; never rejects. */
  readonly open: (runner: WarmRunner, slot: Slot) => Promise<void>;
}

/**
 * The order and the pace in which sessions are opened: runners in use first, then those that came first; so many at a
 * time, and so many in all. A slot counts from its opening until it is vacated.
 */
export class OpeningQueue {
  readonly #options: OpeningQueueOptions;
  readonly #used = new Map<Slot, WarmRunner>();
  readonly #idle = new Map<Slot, WarmRunner>();
  readonly #opening = new Set<Promise<void>>();
  #count = 0;
  #isStopped = false;

  constructor(options: OpeningQueueOptions) {
    this.#options = options;
  }

  /** Sessions that are open or being opened. */
  get count(): number {
    return this.#count;
  }

  /** Has a slot filled when its turn comes. */
  add(slot: Slot, runner: WarmRunner): void {
    if (this.#isStopped) return;
    (runner.book ? this.#used : this.#idle).set(slot, runner);
    this.#pump();
  }

  /** The runner of a slot is in use now. */
  prefer(slot: Slot, runner: WarmRunner): void {
    if (this.#idle.delete(slot)) this.#used.set(slot, runner);
  }

  remove(slot: Slot): void {
    this.#used.delete(slot);
    this.#idle.delete(slot);
  }

  /** A session ended. */
  vacated(): void {
    this.#count -= 1;
    this.#pump();
  }

  /** Opens nothing any more; resolves when nothing is being opened. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#used.clear();
    this.#idle.clear();
    await Promise.all(this.#opening);
  }

  #pump(): void {
    const { parallel, max, open } = this.#options;
    while (this.#opening.size < parallel && this.#count < max) {
      const [next] = this.#used.size > 0 ? this.#used : this.#idle;
      if (!next) return;
      const [slot, runner] = next;
      this.remove(slot);
      this.#count += 1;
      const opening = open(runner, slot).finally(() => {
        this.#opening.delete(opening);
        this.#pump();
      });
      this.#opening.add(opening);
    }
  }
}
