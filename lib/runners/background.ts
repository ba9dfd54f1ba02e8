import { setMaxListeners } from 'node:events';
import { ServiceError } from '../base/errors.js';
import type { Logger } from '../base/log.js';

/**
 * Work that nobody waits for, with one owner: it is all ended and waited for by `stop`.
 */
export class Background {
  readonly #log: Logger;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(log: Logger) {
    this.#log = log;
    // Every registration that waits its turn listens to it: many are no leak.
    setMaxListeners(0, this.#abort.signal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Starts work. What it throws is a fault of the program and is logged; failures are handled inside. */
  run(work: (signal: AbortSignal) => Promise<void>): void {
    if (this.signal.aborted) return;
    const running = work(this.signal)
      .catch((error: unknown) => {
        if (!this.signal.aborted) this.#log.error('background work failed', { error });
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#abort.abort(new ServiceError('STOPPED', 'the service is stopping'));
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
