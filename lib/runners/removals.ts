import { orAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { Randomness, RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { Cluster } from '../cluster/api.js';
import type { NomadJobs } from '../nomad/api.js';
import { answerLimit } from './answer-limit.js';
import type { Background } from './background.js';
import type { RunnerJob } from './observation.js';
import { Persistent } from './persistent.js';
import type { Removal } from './secure.js';
import { secure } from './secure.js';

export interface RemovalsDeps {
  readonly jobs: Pick<NomadJobs, 'get' | 'register' | 'purge'>;
  /** Whether others are on the same Nomad, and our name among them. */
  readonly cluster: Pick<Cluster, 'isShared' | 'self'>;
  readonly clock: Clock;
  readonly randomness: Pick<Randomness, 'random'>;
  readonly log: Logger;
  readonly background: Background;
  /** Resolves when no registration of this job is on its way any more: a purge that overtook it would be in vain. */
  readonly registered: (id: RunnerId) => Promise<void>;
  readonly onPurged: (id: RunnerId) => void;
  /** The job is another replica's, and is left to it. */
  readonly onKept: (job: RunnerJob) => void;
}

const PARALLEL = 20;
/** Failed returns that are remembered for a client that asks again. */
const MAX_UNREPORTED = 1_000;

/**
 * The removal list: jobs that are purged until Nomad confirms, or until they are found to be another replica's.
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
  add({ id, from, reason }: Removal): void {
    if (this.#pending.has(id)) return;
    const { clock, cluster, randomness, log, background, registered } = this.#deps;
    let takenFrom = from;
    const removal = new Persistent({
      clock,
      random: () => randomness.random(),
      onTrouble: (error) => log.warn('a runner could not be removed, trying on', { runnerId: id, error }),
      work: async (signal) => {
        await registered(id);
        const removal = { id, from: takenFrom, reason };
        // What our client has returned may be another replica's by the time of a second attempt.
        if (cluster.isShared && takenFrom === 'nobody') takenFrom = 'pool';
        const kept = await this.#slots.with(() => this.#remove(removal, signal), signal);
        if (this.#pending.delete(id)) this.#settle(id, kept);
      },
    });
    this.#pending.set(id, removal);
    background.run((signal) => removal.run(signal));
  }

  /** Purges a job, or answers what it says where it is another replica's. */
  async #remove(removal: Removal, signal: AbortSignal): Promise<RunnerJob | undefined> {
    const { jobs, cluster } = this.#deps;
    if (removal.from !== 'nobody') {
      const secured = await secure(jobs, cluster.self, removal, signal);
      if (secured.kind === 'kept') return secured.job;
      if (secured.kind === 'absent') return undefined;
    }
    await jobs.purge(removal.id, signal);
    return undefined;
  }

  #settle(id: RunnerId, kept: RunnerJob | undefined): void {
    const { onPurged, onKept } = this.#deps;
    const unreported = this.#unreported.get(id);
    if (kept) {
      this.#unreported.delete(id); // whoever has it now answers for it
      onKept(kept);
      return;
    }
    if (unreported) unreported.confirmed = true;
    onPurged(id);
  }

  /** The outcome of the purge under way, or of one made now. Resolves at once for a job that is not on the list. */
  async attempt(id: RunnerId): Promise<void> {
    await this.#pending.get(id)?.attempt(this.#deps.background.signal);
  }

  /** A client returns a runner: resolves when Nomad confirmed, rejects with a failure that it may try again after. */
  async confirm(id: RunnerId): Promise<void> {
    using limit = answerLimit(this.#deps.clock, `the removal of runner ${id}`);
    try {
      await orAbort(this.attempt(id), limit.signal);
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
