/**
 * Claims: take first, then talk to Nomad.
 *
 * The runner leaves the idle set in the same turn in which it is chosen, so no other claim can choose it. Then its job,
 * as an event showed it or as it is read now, is written back with `used`, under its index: whoever else wrote to it
 * meanwhile was first. Only when Nomad has it, and the allocation still runs, does the client get the runner. A read
 * that fails leaves the runner idle; a write that fails destroys it, since nobody knows what Nomad made of it.
 */
import { orAbort, throwIfAborted } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { hasCode, messageOf, ServiceError } from '../base/errors.js';
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import type { Cluster } from '../cluster/api.js';
import type { EnvironmentStore } from '../environments/store.js';
import type { Nomad } from '../nomad/api.js';
import type { WireJob } from '../nomad/wire.js';
import { answerLimit } from './answer-limit.js';
import type { RunnerHandle } from './handle.js';
import type { JobDocuments } from './job-documents.js';
import { createClaimedJob, readRunnerJob } from './job.js';
import type { ClaimOutcome } from './observation.js';
import type { IdleOrder } from './idle-order.js';
import { currentOf } from './allocation-record.js';
import { isCurrent, runnerOf } from './state.js';
import { describeReason } from './statistics.js';
import type { World } from './world.js';
import { unknownEnvironment } from './unknown.js';

export interface ClaimsDeps {
  readonly nomad: Nomad;
  readonly clock: Clock;
  readonly world: World;
  readonly order: Pick<IdleOrder, 'next'>;
  readonly documents: Pick<JobDocuments, 'take'>;
  /** True while events arrive, so that what is known of an allocation is what Nomad has. */
  readonly isFollowing: () => boolean;
  readonly cluster: Pick<Cluster, 'isShared' | 'self'>;
  readonly store: Pick<EnvironmentStore, 'get'>;
  /** The handle of a runner that was just claimed. */
  readonly handleOf: (id: RunnerId) => RunnerHandle | undefined;
  /** Tracks work, and aborts it when the service stops. */
  readonly signal: AbortSignal;
}

export interface ClaimOptions {
  readonly environmentId: EnvironmentId;
  readonly inactivityTimeoutSeconds: number;
  readonly requestSignal?: AbortSignal;
}

/** Failed writes that one claim may cost: a Nomad that refuses every one of them must not empty the pool. */
const MAX_FAILED_WRITES = 3;

/** Failures that the next runner would meet as well. */
const FINAL = [
  'NOMAD_UNREACHABLE',
  'NOMAD_REFUSED',
  'NOMAD_OVERLOADED',
  'ENVIRONMENT_NOT_FOUND',
  'STOPPED',
] as const;

/** How one attempt went. `failure` is set where the client is told of it if there is no other runner. */
interface Attempt {
  readonly outcome: ClaimOutcome;
  readonly failure?: ServiceError;
}

/** What the attempts of one claim have in common. */
interface ClaimUnderWay {
  readonly timeoutSeconds: number;
  readonly template: Promise<void>;
  readonly requestSignal: AbortSignal;
}

/** A write that takes longer than this says that Nomad is in trouble. */
const SLOW_WRITE_MS = 250;

export class Claims {
  readonly #deps: ClaimsDeps;
  readonly #writes = new Set<{ readonly sinceMs: number }>();

  constructor(deps: ClaimsDeps) {
    this.#deps = deps;
  }

  /**
   * Hands out a runner. Where Nomad takes too long the client is told so; a runner that Nomad gives it after that is
   * returned.
   */
  async claim(options: ClaimOptions): Promise<RunnerHandle> {
    using limit = answerLimit(this.#deps.clock, 'the claim');
    const { requestSignal = limit.signal } = options;
    const waiting = AbortSignal.any([requestSignal, limit.signal]);
    return await orAbort(this.#claim({ ...options, requestSignal: waiting }), waiting);
  }

  async #claim(options: ClaimOptions & { readonly requestSignal: AbortSignal }): Promise<RunnerHandle> {
    const { world, handleOf } = this.#deps;
    const { environmentId, inactivityTimeoutSeconds: timeoutSeconds, requestSignal } = options;
    const template = this.#readTemplate(environmentId);
    let failedWrites = 0;
    let failure: ServiceError | undefined;
    for (;;) {
      throwIfAborted(requestSignal);
      const id = this.#next(environmentId, failure);
      world.dispatch({ kind: 'taken', id, timeoutSeconds });
      const attempt = await this.#attempt(id, { timeoutSeconds, template, requestSignal });
      world.dispatch({ kind: 'claim-settled', id, outcome: attempt.outcome });
      const handle = attempt.outcome.kind === 'written' ? handleOf(id) : undefined;
      if (handle) return this.#handOver(handle, requestSignal);
      if (attempt.failure === undefined) continue;
      failure = attempt.failure;
      failedWrites += 1;
      const isFinal = hasCode(failure, ...FINAL);
      const wasRead = attempt.outcome.kind === 'untouched';
      if (isFinal || wasRead || failedWrites >= MAX_FAILED_WRITES) throw failure;
    }
  }

  /** The runner to try next. Throws where there is no environment or no runner. */
  #next(environmentId: EnvironmentId, failure: ServiceError | undefined): RunnerId {
    const { world, order } = this.#deps;
    const { state } = world;
    const pool = state.pools.get(environmentId);
    if (pool?.phase !== 'wanted') {
      throw unknownEnvironment(environmentId);
    }
    const id = order.next(environmentId);
    if (id !== undefined) return id;
    if (failure !== undefined) throw failure;
    const reason = describeReason(state, pool);
    const why = reason === undefined ? 'all of its pool are in use or starting' : reason;
    throw new ServiceError(
      'NO_RUNNER_AVAILABLE',
      `no runner of environment ${environmentId} is available: ${why}`,
      { details: { environmentId }, retryAfterSeconds: reason === undefined ? 1 : 5 },
    );
  }

  /** A client that left while Nomad was written to has no use for the runner. */
  #handOver(handle: RunnerHandle, requestSignal: AbortSignal): RunnerHandle {
    if (!requestSignal.aborted) return handle;
    handle.abandon('returned');
    throwIfAborted(requestSignal);
    return handle;
  }

  /**
   * Among several replicas the environment may have been changed or deleted by another one, whose answer to that came
   * before this claim, while its event has not arrived yet. So its template is read beside the write, and nothing of
   * another specification than that is handed out. Rejects with ENVIRONMENT_NOT_FOUND, or where Nomad cannot be read.
   */
  #readTemplate(id: EnvironmentId): Promise<void> {
    const { cluster, store, world, signal } = this.#deps;
    if (!cluster.isShared || world.state.pools.get(id)?.phase !== 'wanted') return Promise.resolve();
    const reading = orAbort(store.get(id, signal), signal).then((stored) => {
      if (stored) world.dispatch({ kind: 'template-read', stored });
      if (!stored || stored.deleting) throw unknownEnvironment(id);
    });
    reading.catch(() => undefined); // whoever waits for it learns of it
    return reading;
  }

  async #attempt(id: RunnerId, claim: ClaimUnderWay): Promise<Attempt> {
    const { world, cluster, documents } = this.#deps;
    const { timeoutSeconds, template, requestSignal } = claim;
    const kept = this.#isNomadPrompt() ? documents.take(id) : undefined;
    let written = false;
    try {
      const job = kept ?? (await this.#read(id, requestSignal));
      if (!kept) await template;
      const says = job && readRunnerJob(job);
      if (!job || !says || says.stopped) return { outcome: { kind: 'absent' } };
      if (says.used) return { outcome: { kind: 'foreign', job: says } };
      const runner = runnerOf(world.state, id);
      const pool = runner && world.state.pools.get(runner.environmentId);
      // What Nomad has decides, should it differ from what was known of the job.
      if (!pool || !isCurrent({ ...runner, spec: says.spec ?? runner.spec }, pool.stored)) {
        return { outcome: { kind: cluster.isShared ? 'untouched' : 'absent' } };
      }
      throwIfAborted(requestSignal); // nobody wants it any more
      written = true;
      const claimed = createClaimedJob(job, timeoutSeconds, cluster.self);
      const jobModifyIndex = await this.#write(claimed, job.JobModifyIndex ?? 0);
      await template;
      await this.#lookAtAllocation(id);
      return { outcome: { kind: 'written', jobModifyIndex } };
    } catch (error) {
      const failure = asServiceError(error);
      if (!written) return { outcome: { kind: 'untouched' }, failure };
      if (hasCode(error, 'NOMAD_CONFLICT')) {
        // What was kept may be old: then the job is read after all, as it is now.
        return kept ? this.#attempt(id, claim) : this.#afterConflict(id, failure);
      }
      return { outcome: { kind: 'uncertain' }, failure };
    }
  }

  async #read(id: RunnerId, requestSignal: AbortSignal): Promise<WireJob | undefined> {
    const signal = AbortSignal.any([this.#deps.signal, requestSignal]);
    return await orAbort(this.#deps.nomad.jobs.get(id, signal), signal);
  }

  async #write(job: WireJob, enforceIndex: number): Promise<number> {
    const { nomad, clock, signal } = this.#deps;
    const write = { sinceMs: clock.monotonicMs() };
    this.#writes.add(write);
    try {
      const { jobModifyIndex } = await nomad.jobs.register(job, { enforceIndex, signal });
      return jobModifyIndex;
    } finally {
      this.#writes.delete(write);
    }
  }

  /**
   * Whether a job may be written that was not read first. A write without an answer costs its runner, a reading costs
   * nothing: so while Nomad is away or slow every claim reads first, and an outage empties no pool.
   */
  #isNomadPrompt(): boolean {
    const { clock, isFollowing } = this.#deps;
    const lateMs = clock.monotonicMs() - SLOW_WRITE_MS;
    return isFollowing() && ![...this.#writes].some(({ sinceMs }) => sinceMs <= lateMs);
  }

  /** Somebody else wrote to the job: who has the runner, the job tells. */
  async #afterConflict(id: RunnerId, conflict: ServiceError): Promise<Attempt> {
    try {
      const job = await this.#deps.nomad.jobs.get(id, this.#deps.signal);
      const says = job && readRunnerJob(job);
      if (!says || says.stopped) return { outcome: { kind: 'absent' } };
      const isOwnWrite = says.used?.owner === this.#deps.cluster.self;
      if (says.used && !isOwnWrite) return { outcome: { kind: 'foreign', job: says } };
    } catch {
      // It could not be asked; then the runner is in doubt like one whose write failed.
    }
    return { outcome: { kind: 'uncertain' }, failure: conflict };
  }

  /**
   * The write makes a new version of the job, which Nomad usually applies in place. Events tell of anything else; while
   * none arrive, the allocation is asked for.
   */
  async #lookAtAllocation(id: RunnerId): Promise<void> {
    const { nomad, world, isFollowing, signal } = this.#deps;
    const runner = runnerOf(world.state, id);
    const record = runner && currentOf(runner.allocations);
    const wantsPorts =
      (runner && world.state.pools.get(runner.environmentId)?.stored.environment.exposedPorts) ?? [];
    const knowsPorts = wantsPorts.length === 0 || record?.ports !== undefined;
    if (!record || (isFollowing() && knowsPorts)) return;
    const allocation = await nomad.allocations.get(record.id, signal);
    if (allocation) world.dispatch({ kind: 'allocation', allocation });
    else throw new ServiceError('NOMAD_NOT_FOUND', `the allocation of runner ${id} is gone`);
  }
}

/** What is thrown by the Nomad client is one of ours already; anything else is a fault of the program. */
function asServiceError(error: unknown): ServiceError {
  return error instanceof ServiceError
    ? error
    : new ServiceError('UNKNOWN', messageOf(error), { cause: error });
}
