import type { AllocationId, EnvironmentId, RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { EnvironmentStore } from '../environments/store.js';
import { readTemplate } from '../environments/store.js';
import { parseTemplateJobId } from '../environments/template.js';
import type { Nomad } from '../nomad/api.js';
import type { NomadEvent } from '../nomad/model.js';
import type { Background } from './background.js';
import { readRunnerJob } from './job.js';
import type { JobDocuments } from './job-documents.js';
import type { Listing, RunnerJob } from './observation.js';
import { readListing } from './recover.js';
import { runnerOf } from './state.js';
import type { World } from './world.js';

export interface WitnessDeps {
  readonly nomad: Nomad;
  readonly store: EnvironmentStore;
  readonly world: World;
  readonly documents: Pick<JobDocuments, 'note'>;
  readonly log: Logger;
  readonly background: Background;
}

const PARALLEL_LOOKS = 20;

/** Turns what Nomad says, in events, listings and answers to single questions, into observations. */
export class Witness {
  readonly #deps: WitnessDeps;
  readonly #slots = new Slots(PARALLEL_LOOKS);
  readonly #looks = new Map<RunnerId, 'under way' | 'again'>();
  /** What was told of once: unreadable templates, runners without an environment. */
  readonly #told = new Set<string>();

  constructor(deps: WitnessDeps) {
    this.#deps = deps;
  }

  event(event: NomadEvent): void {
    const { world, documents } = this.#deps;
    switch (event.topic) {
      case 'allocation':
        world.dispatch({ kind: 'allocation', allocation: event.allocation });
        return;
      case 'evaluation':
        world.dispatch({ kind: 'evaluation', evaluation: event.evaluation });
        return;
      case 'node':
        world.dispatch({ kind: 'node', node: event.node });
        return;
      case 'job': {
        documents.note(event.job);
        const job = readRunnerJob(event.job);
        if (job) this.#runnerJob(job);
        if (parseTemplateJobId(event.job.ID) === undefined) return;
        const stored = readTemplate(event.job);
        if (!('reason' in stored)) world.dispatch({ kind: 'template-job', stored });
      }
    }
  }

  #runnerJob(job: RunnerJob): void {
    const { world, log } = this.#deps;
    const { cluster, synced, listedIndex } = world.state;
    const owner = job.used?.owner;
    const isNews = synced && job.modifyIndex > listedIndex;
    if (
      !cluster.isShared &&
      isNews &&
      owner !== undefined &&
      owner !== cluster.self &&
      this.#isNews('others')
    ) {
      log.warn('another service claims runners of this Nomad, and both must have cluster.secret for that', {
        owner,
        self: cluster.self,
      });
    }
    world.dispatch({ kind: 'runner-job', job });
  }

  async read(signal: AbortSignal): Promise<Listing> {
    const { nomad, store, world } = this.#deps;
    const { sequence: startedAt, cluster } = world.state;
    const isKnown = (id: RunnerId, jobModifyIndex: number): boolean => {
      const runner = runnerOf(world.state, id);
      if (!runner || runner.phase.name === 'idle' || runner.phase.name === 'starting') return false;
      return !cluster.isShared || jobModifyIndex <= runner.written.index;
    };
    return readListing({ nomad, store, startedAt, isKnown, signal });
  }

  listing(listing: Listing): void {
    const { world, log } = this.#deps;
    world.dispatch({ kind: 'listing', listing });
    for (const { jobId, reason } of listing.templates.unreadable) {
      if (this.#isNews(`${jobId}: ${reason}`))
        log.warn('a template job cannot be understood', { jobId, reason });
    }
    const orphans = listing.runners.filter((job) => !world.state.pools.has(job.environmentId));
    const environments = [...new Set(orphans.map((job) => job.environmentId))];
    if (environments.length > 0 && this.#isNews(`orphans of ${environments.join()}`)) {
      const runners = orphans.length;
      log.warn('runners of environments that are not there are left alone', { environments, runners });
    }
  }

  /**
   * Looks at a runner of which only the name is known; once at a time for each. Asked for again meanwhile, it looks again:
   * the answer on its way may be older than the event that asks.
   */
  look(id: RunnerId): void {
    const { log, background } = this.#deps;
    if (this.#looks.has(id)) {
      this.#looks.set(id, 'again');
      return;
    }
    background.run(async (signal) => {
      do {
        this.#looks.set(id, 'under way');
        try {
          await this.#lookOnce(id, signal);
        } catch (error) {
          // The next listing tells as well.
          if (!signal.aborted) log.debug('a runner could not be looked at', { runnerId: id, error });
        }
      } while (this.#looks.get(id) === 'again' && !signal.aborted);
      this.#looks.delete(id);
    });
  }

  async #lookOnce(id: RunnerId, signal: AbortSignal): Promise<void> {
    const { nomad, world } = this.#deps;
    const [job, allocations] = await this.#slots.with(
      () => Promise.all([nomad.jobs.get(id, signal), nomad.jobs.allocations(id, signal)]),
      signal,
    );
    world.dispatch({ kind: 'inspected', id, job: job && readRunnerJob(job), allocations });
  }

  /** Looks at the template of an environment that an event told of. */
  lookAtTemplate(id: EnvironmentId): void {
    const { store, world, log, background } = this.#deps;
    background.run(async (signal) => {
      try {
        const stored = await store.get(id, signal);
        if (stored) world.dispatch({ kind: 'template-found', stored });
      } catch (error) {
        // The next listing tells as well.
        if (!signal.aborted) log.debug('a template could not be looked at', { environmentId: id, error });
      }
    });
  }

  /** Asks for one allocation, where no event can have told of it. A failure tells nothing, and is none. */
  async lookAtAllocation(id: AllocationId): Promise<void> {
    const { nomad, world, log, background } = this.#deps;
    try {
      const allocation = await nomad.allocations.get(id, background.signal);
      if (allocation) world.dispatch({ kind: 'allocation', allocation });
    } catch (error) {
      log.debug('an allocation could not be looked at', { allocationId: id, error });
    }
  }

  #isNews(what: string): boolean {
    if (this.#told.has(what)) return false;
    this.#told.add(what);
    return true;
  }
}
