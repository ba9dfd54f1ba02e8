import { ServiceError } from '../base/errors.js';
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import type { Environment } from '../environments/environment.js';
import type { EnvironmentStatistics } from '../protocol/http.js';
import type { Location, Runners } from './api.js';
import type { ClaimOptions } from './claims.js';
import type { Parts, RunnerManagerDeps } from './parts.js';
import { createParts } from './parts.js';
import type { ClaimedRunner, PoolListener } from './runner.js';
import { runnerOf } from './state.js';
import { createStatistics } from './statistics.js';
import { UnfitEnvironments } from './unfit.js';
import { unknownRunner } from './unknown.js';

/**
 * Runners from the outside: claims, returns, environments. Decides nothing itself, and does no work: its parts
 * (parts.ts) do.
 *
 * Stopping leaves every runner in Nomad for the next start, which finds idle ones idle and used ones used.
 */
export class RunnerManager implements Runners, Lifecycle {
  readonly #deps: RunnerManagerDeps;
  readonly #parts: Parts;
  readonly #unfit = new UnfitEnvironments();
  /** Ends following the other replicas. */
  #leave: () => void = () => undefined;
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: RunnerManagerDeps) {
    this.#deps = deps;
    this.#parts = createParts(deps);
  }

  get state(): LifecycleState {
    return this.#state;
  }

  get ready(): boolean {
    return this.#parts.world.state.synced;
  }

  get nomadReachable(): boolean {
    return this.#parts.follower.following;
  }

  /** Begins to follow Nomad, and resolves at once: whether Nomad can be reached is told by `ready`. */
  start(): Promise<void> {
    assertNew('runners', this.#state);
    this.#state = 'running';
    this.#leave = this.#parts.followCluster(() => {
      this.#deps.log.error('another process goes by the name of this one: it lets go of all its runners');
      void this.stop();
    });
    if (this.#stopping) this.#leave();
    this.#parts.background.run((signal) => this.#parts.follower.run(signal));
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async claim(options: ClaimOptions): Promise<ClaimedRunner> {
    this.#assertReady();
    return this.#parts.pause.during(() => this.#parts.claims.claim(options));
  }

  get(id: string): ClaimedRunner {
    this.#assertReady();
    const runnerId = parseRunnerId(id)?.runnerId;
    const handle = runnerId === undefined ? undefined : this.#parts.handles.get(runnerId);
    if (!handle) throw unknownRunner(id);
    return handle;
  }

  owns(id: string): boolean {
    return this.#parts.locator.owns(id);
  }

  async locate(id: string, signal: AbortSignal): Promise<Location> {
    this.#assertReady();
    return this.#parts.locator.locate(id, signal);
  }

  async return(id: string): Promise<void> {
    this.#assertReady();
    const runnerId = parseRunnerId(id)?.runnerId;
    if (runnerId !== undefined && this.#parts.handles.get(runnerId)) {
      this.#parts.world.dispatch({ kind: 'released', id: runnerId, reason: 'returned' });
      await this.#parts.removals.confirm(runnerId);
      return;
    }
    if (runnerId === undefined || !this.#parts.removals.isUnreported(runnerId)) throw unknownRunner(id);
    await this.#parts.removals.confirmAgain(runnerId);
  }

  statistics(): EnvironmentStatistics[] {
    this.#assertReady();
    return createStatistics(this.#parts.world.state, this.#unfit);
  }

  environments(): Environment[] {
    this.#assertReady();
    return this.#parts.catalog.list();
  }

  environment(id: EnvironmentId): Environment {
    this.#assertReady();
    return this.#parts.catalog.get(id);
  }

  async refreshEnvironments(signal?: AbortSignal): Promise<void> {
    this.#assertReady();
    await this.#parts.catalog.refresh(signal);
  }

  async putEnvironment(environment: Environment): Promise<'created' | 'replaced' | 'unchanged'> {
    this.#assertReady();
    return this.#parts.catalog.put(environment);
  }

  async deleteEnvironment(id: EnvironmentId): Promise<void> {
    this.#assertReady();
    await this.#parts.catalog.delete(id);
  }

  /**
   * Commands cannot be run as they have to in runners of this environment, or, without a reason, they can after all: its
   * statistics say so from now on.
   */
  reportFitness(environment: Environment, reason: string | undefined): void {
    if (reason === undefined) this.#unfit.clear(environment);
    else if (this.#unfit.report(environment, reason)) {
      this.#deps.log.warn('an environment cannot run commands', { environmentId: environment.id, reason });
    }
  }

  /**
   * Tells of each idle runner, once in each life of its task: of those that are idle now at once, the oldest first. The
   * returned function ends that; the signals of lives that were told of go on to follow them.
   */
  listen(listener: PoolListener): () => void {
    return this.#state === 'new' || this.#state === 'running'
      ? this.#parts.lives.listen(listener)
      : () => undefined;
  }

  /**
   * A check found that an idle runner answers wrongly: it is replaced, and its pool says why. False, and nothing is
   * changed, where the runner is not idle any more; a claim under way wins.
   */
  replaceIdle(id: RunnerId, reason: string): boolean {
    const isIdle = runnerOf(this.#parts.world.state, id)?.phase.name === 'idle';
    if (!isIdle || this.#state !== 'running') return false;
    this.#deps.log.warn('an idle runner answers wrongly and is replaced', { runnerId: id, reason });
    this.#parts.world.dispatch({ kind: 'checked', id, fault: reason });
    return true;
  }

  /** A check found that a runner answers as it has to, so its pool has no more reason to doubt its kind. */
  confirmIdle(id: RunnerId): void {
    this.#parts.world.dispatch({ kind: 'checked', id, fault: undefined });
  }

  onGone(listener: (id: RunnerId) => void): () => void {
    return this.#parts.handles.onGone(listener);
  }

  #assertReady(): void {
    if (this.#state === 'stopping' || this.#state === 'stopped') {
      throw new ServiceError('STOPPED', 'the service is stopping');
    }
    if (this.ready) return;
    throw new ServiceError('NOT_READY', 'Nomad was not read yet: it is unknown which runners there are', {
      retryAfterSeconds: 2,
    });
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    this.#leave();
    this.#parts.world.stop();
    this.#parts.handles.stop();
    this.#parts.lives.stop();
    await this.#parts.background.stop();
    this.#state = 'stopped';
  }
}
