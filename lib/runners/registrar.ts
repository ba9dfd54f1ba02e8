import { hasCode, messageOf } from '../base/errors.js';
import type { RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { Cluster } from '../cluster/api.js';
import type { NomadJobs } from '../nomad/api.js';
import type { Background } from './background.js';
import type { ClaimPause } from './claim-pause.js';
import { createRunnerJob } from './job.js';
import { environmentOf, isCurrent, runnerOf } from './state.js';
import type { World } from './world.js';

export interface RegistrarDeps {
  readonly jobs: Pick<NomadJobs, 'register'>;
  readonly cluster: Pick<Cluster, 'leads'>;
  readonly world: World;
  readonly log: Logger;
  readonly background: Background;
  readonly pause: Pick<ClaimPause, 'over'>;
}

const PARALLEL = 20;

/** Registers the jobs of new runners, several at a time, and tells the world how each went. */
export class Registrar {
  readonly #deps: RegistrarDeps;
  readonly #slots = new Slots(PARALLEL);
  readonly #underWay = new Map<RunnerId, Promise<void>>();

  constructor(deps: RegistrarDeps) {
    this.#deps = deps;
  }

  register(id: RunnerId): void {
    this.#deps.background.run((signal) => {
      const work = this.#register(id, signal).finally(() => this.#underWay.delete(id));
      this.#underWay.set(id, work);
      return work;
    });
  }

  /** Resolves when no registration of this runner is on its way. */
  async settled(id: RunnerId): Promise<void> {
    await this.#underWay.get(id);
  }

  async #register(id: RunnerId, signal: AbortSignal): Promise<void> {
    const { jobs, cluster, world, log, pause } = this.#deps;
    await pause.over();
    if (signal.aborted) return;
    let isWanted = true;
    try {
      await this.#slots.with(async () => {
        const runner = runnerOf(world.state, id);
        const stored = world.state.pools.get(environmentOf(id))?.stored;
        // Given up while it waited for its turn; its purge finds nothing.
        if (runner?.phase.name !== 'starting' || !stored || !isCurrent(runner, stored)) return;
        // Another replica fills the pools by now.
        isWanted = cluster.leads;
        if (!isWanted) return;
        await jobs.register(createRunnerJob(stored, id), { enforceIndex: 0, signal });
      }, signal);
      world.dispatch({ kind: isWanted ? 'registered' : 'withdrawn', id });
    } catch (error) {
      if (signal.aborted) return;
      // Its name is new, so whatever has it is this very job: an earlier attempt of the client got through.
      if (hasCode(error, 'NOMAD_CONFLICT')) {
        world.dispatch({ kind: 'registered', id });
        return;
      }
      log.warn('a runner could not be registered', { runnerId: id, error });
      world.dispatch({ kind: 'not-registered', id, reason: messageOf(error) });
    }
  }
}
