import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { Randomness, RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { NomadJobs } from '../nomad/api.js';
import type { Background } from './background.js';
import { Persistent } from './persistent.js';

export interface RemovalsDeps {
  readonly jobs: Pick<NomadJobs, 'purge'>;
  readonly clock: Clock;
  readonly randomness: Pick<Randomness, 'random'>;
  readonly log: Logger;
  readonly background: Background;
  /** Resolves when no registration of this job is on its way any more: a purge that overtook it would be in vain. */
  readonly registered: (id: RunnerId) => Promise<void>;
  readonly onPurged: (id: RunnerId) => void;
}

const PARALLEL = 20;
/** Failed returns that are remembered for a client that asks again. */
const MAX_UNREPORTED = 1_000;

/**
 * The removal list: jobs that are purged until Nomad confirms.
 *
 * A return that Nomad did not confirm is remembered, so that the client who asks again learns the truth: 503 until
 * Nomad accepted, success once after that, and RUNNER_GONE from then on.
 */
export class Removals {
  readonly #deps: RemovalsDeps;
  readonly #slots = new Slots(PARALLEL);
  readonly #pending = new Map<RunnerId, Persistent>();
  /** Returns that failed for their client; true once Nomad confirmed. */
  readonly #unreported = new Map<RunnerId, { confirmed: boolean }>();

  constructor(deps: RemovalsDeps) {
    this.#deps = deps;
  }

  /** Puts a job on the list. One that is on it already stays as it is. */
  add(id: RunnerId): void {
    if (this.#pending.has(id)) return;
    const { jobs, clock, randomness, log, background, registered, onPurged } = this.#deps;
    const removal = new Persistent({
      clock,
      random: () => randomness.random(),
      onTrouble: (error) => log.warn('a runner could not be removed, trying on', { runnerId: id, error }),
      work: async (signal) => {
        await registered(id);
        await this.#slots.with(() => jobs.purge(id, signal), signal);
        if (!this.#pending.delete(id)) return;
        const unreported = this.#unreported.get(id);
        if (unreported) unreported.confirmed = true;
        onPurged(id);
      },
    });
    this.#pending.set(id, removal);
    background.run((signal) => removal.run(signal));
  }

  /** The outcome of the purge under way, or of one made now. Resolves at once for a job that is not on the list. */
  async attempt(id: RunnerId): Promise<void> {
    await this.#pending.get(id)?.attempt(this.#deps.background.signal);
  }

  /** A client returns a runner: resolves when Nomad confirmed, rejects with a failure that it may try again after. */
  async confirm(id: RunnerId): Promise<void> {
    try {
      await this.attempt(id);
    } catch (error) {
      this.#remember(id);
      if (error instanceof ServiceError && error.code === 'STOPPED') throw error;
      throw new ServiceError('NOMAD_UNREACHABLE', `Nomad has not confirmed the removal of runner ${id} yet`, {
        cause: error,
        details: { runnerId: id },
      });
    }
  }

  #remember(id: RunnerId): void {
    this.#unreported.set(id, { confirmed: !this.#pending.has(id) });
    const [oldest] = this.#unreported.keys();
    if (this.#unreported.size > MAX_UNREPORTED && oldest !== undefined) this.#unreported.delete(oldest);
  }

  /** True where a client asks again for a return that failed; then `confirmAgain` answers. */
  isUnreported(id: RunnerId): boolean {
    return this.#unreported.has(id);
  }

  async confirmAgain(id: RunnerId): Promise<void> {
    if (this.#unreported.get(id)?.confirmed !== true) await this.confirm(id);
    this.#unreported.delete(id);
  }
}
