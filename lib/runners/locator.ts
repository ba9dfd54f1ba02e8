/**
 * Who answers for a runner, and the takeover of those whose owner is dead.
 *
 *   ours, gone ─▶ own          another's who lives ─▶ elsewhere          another's who is dead ─▶ takeover ─▶ own
 *   anything else: one look at the job in Nomad, and the same again
 *
 * A claim elsewhere may have been answered before its event is here, so what is idle or unknown here is looked at and never
 * called gone on hearsay. A takeover is a write under the index that was read: of several replicas one gets the runner, and
 * the others find out by looking again. Requests for the same runner share one look.
 */
import { deadline, orAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { hasCode, ServiceError } from '../base/errors.js';
import type { RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { Cluster } from '../cluster/api.js';
import type { NomadJobs } from '../nomad/api.js';
import type { Allocation } from '../nomad/model.js';
import type { WireJob } from '../nomad/wire.js';
import type { Location } from './api.js';
import type { Background } from './background.js';
import { createClaimedJob, readRunnerJob } from './job.js';
import type { RunnerJob } from './observation.js';
import type { Removals } from './removals.js';
import type { Use } from './state.js';
import { environmentOf, runnerOf } from './state.js';
import type { World } from './world.js';

export interface LocatorDeps {
  readonly jobs: Pick<NomadJobs, 'get' | 'register' | 'allocations'>;
  readonly cluster: Cluster;
  readonly world: World;
  readonly removals: Pick<Removals, 'isUnreported'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly background: Background;
}

/** An answer has to be there within 5 s, and the owner needs some of them. */
const LOOK_MS = 3_000;
/** Each conflict means that another replica has the runner, or has given it up: the next look tells. */
const MAX_LOOKS = 3;
const OWN: Location = { kind: 'own' };

export class Locator {
  readonly #deps: LocatorDeps;
  readonly #looks = new Map<RunnerId, Promise<Location>>();

  constructor(deps: LocatorDeps) {
    this.#deps = deps;
  }

  owns(id: string): boolean {
    const { cluster, world, removals } = this.#deps;
    if (!cluster.isShared || !world.state.synced) return true;
    const runnerId = parseRunnerId(id)?.runnerId;
    if (runnerId === undefined || world.state.graves.has(runnerId)) return true;
    if (removals.isUnreported(runnerId)) return true;
    const phase = runnerOf(world.state, runnerId)?.phase;
    // Its own client gave it back. Whatever else we give up may be another replica's without our knowing.
    if (phase?.name === 'removing') return phase.reason === 'returned';
    return phase?.name === 'used' || phase?.name === 'adopting';
  }

  /** Rejects with the reason of `signal`, or with NOMAD_UNREACHABLE where it cannot be told in time. */
  async locate(id: string, signal: AbortSignal): Promise<Location> {
    const runnerId = parseRunnerId(id)?.runnerId;
    if (runnerId === undefined || this.owns(id)) return OWN;
    return this.#living(runnerId) ?? (await orAbort(this.#look(runnerId), signal));
  }

  /** Where a runner is of which its owner, who lives, is known. */
  #living(id: RunnerId): Location | undefined {
    const phase = runnerOf(this.#deps.world.state, id)?.phase;
    return phase?.name === 'foreign' ? this.#with(phase.use) : undefined;
  }

  #with({ owner, ending }: Use): Location | undefined {
    if (ending !== undefined) return OWN; // nobody serves it any more
    const replica = owner === undefined ? undefined : this.#deps.cluster.find(owner);
    return replica && { kind: 'elsewhere', owner: replica };
  }

  /** As `#with`, before an owner is taken for dead. */
  async #sought(use: Use, signal: AbortSignal): Promise<Location | undefined> {
    if (use.owner !== undefined) await this.#deps.cluster.seek(use.owner, signal);
    return this.#with(use);
  }

  #look(id: RunnerId): Promise<Location> {
    const known = this.#looks.get(id);
    if (known) return known;
    const look = this.#lookInTime(id).finally(() => this.#looks.delete(id));
    this.#looks.set(id, look);
    look.catch(() => undefined); // whoever asked may have left
    return look;
  }

  async #lookInTime(id: RunnerId): Promise<Location> {
    const { clock, background } = this.#deps;
    const late = `Nomad does not tell in time who has runner ${id}`;
    using limit = deadline(clock, LOOK_MS, 'NOMAD_UNREACHABLE', late);
    const signal = AbortSignal.any([background.signal, limit.signal]);
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
        const found = await orAbort(this.#lookOnce(id, signal), signal);
        if (found) return found;
      }
    } catch (error) {
      if (background.signal.aborted) throw error;
      throw unknownOwner(id, error);
    }
    throw unknownOwner(id, undefined);
  }

  /** Undefined where somebody else wrote to the job meanwhile. */
  async #lookOnce(id: RunnerId, signal: AbortSignal): Promise<Location | undefined> {
    const { jobs, cluster, world } = this.#deps;
    const job = await jobs.get(id, signal);
    const says = job && readRunnerJob(job);
    if (!job || !says?.used || !world.state.pools.has(environmentOf(id))) {
      return (says?.used && this.#with(says.used)) ?? OWN;
    }
    if (says.used.owner === cluster.self) {
      world.dispatch({ kind: 'inspected', id, job: says, allocations: await jobs.allocations(id, signal) });
      return OWN;
    }
    const living = this.#with(says.used) ?? (await this.#sought(says.used, signal));
    // A removal of ours would take what we take over for what it is to purge. It finds out whose the runner is.
    const isBeingRemoved = runnerOf(world.state, id)?.phase.name === 'removing';
    if (!living && (isBeingRemoved || !cluster.isInformed)) throw unknownOwner(id, undefined);
    if (!living) return this.#takeOver(job, says, says.used, signal);
    world.dispatch({ kind: 'inspected', id, job: says, allocations: [] });
    return living;
  }

  async #takeOver(
    job: WireJob,
    says: RunnerJob,
    use: Use,
    signal: AbortSignal,
  ): Promise<Location | undefined> {
    const { jobs, cluster, world, log } = this.#deps;
    const owner = cluster.self;
    const enforceIndex = job.JobModifyIndex ?? 0;
    try {
      const allocations: Allocation[] = await jobs.allocations(says.id, signal);
      const taken = createClaimedJob(job, use.timeoutSeconds, owner);
      const { jobModifyIndex: writtenAt } = await jobs.register(taken, { enforceIndex, signal });
      log.info('a runner is taken over', { runnerId: says.id, from: use.owner });
      const mine = { ...says, used: { ...use, owner }, writtenAt };
      world.dispatch({ kind: 'inspected', id: says.id, job: mine, allocations });
      // A claim of our own may have chosen it before its event was here: it learns now that it was too late.
      const isBeingClaimed = (): boolean => runnerOf(world.state, says.id)?.phase.name === 'claiming';
      await world.until(() => !isBeingClaimed(), signal);
      return OWN;
    } catch (error) {
      if (hasCode(error, 'NOMAD_CONFLICT')) return undefined;
      throw error;
    }
  }
}

function unknownOwner(id: RunnerId, cause: unknown): ServiceError {
  return new ServiceError('NOMAD_UNREACHABLE', `it cannot be told now who has runner ${id}`, {
    cause,
    details: { runnerId: id },
    retryAfterSeconds: 2,
  });
}
