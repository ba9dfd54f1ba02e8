import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { EnvironmentId, Randomness, RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import type { Logger } from '../base/log.js';
import type { PoolConfig, RunnersConfig } from '../config/config.js';
import type { Environment } from '../environments/environment.js';
import type { EnvironmentStore } from '../environments/store.js';
import type { Nomad } from '../nomad/api.js';
import type { EnvironmentStatistics } from '../protocol/http.js';
import type { Runners } from './api.js';
import { Background } from './background.js';
import { Catalog } from './catalog.js';
import { ClaimPause } from './claim-pause.js';
import type { ClaimOptions } from './claims.js';
import { Claims } from './claims.js';
import { Follower } from './follow.js';
import { Handles } from './handles.js';
import { JobDocuments } from './job-documents.js';
import { Lives } from './lives.js';
import type { Effect } from './observation.js';
import { Registrar } from './registrar.js';
import { Removals } from './removals.js';
import type { ClaimedRunner, PoolListener } from './runner.js';
import { runnerOf } from './state.js';
import { createStatistics } from './statistics.js';
import { Witness } from './witness.js';
import { UnfitEnvironments } from './unfit.js';
import { unknownRunner } from './unknown.js';
import { World } from './world.js';

export interface RunnerManagerDeps {
  readonly nomad: Nomad;
  readonly environments: EnvironmentStore;
  readonly pool: Pick<PoolConfig, 'startTimeout' | 'reconcileInterval'>;
  readonly runners: Pick<RunnersConfig, 'maxLifetime'>;
  /** How long after a claim the pools are refilled. Default 25. */
  readonly refillDelayMs?: number;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
}

/**
 * Runners from the outside: claims, returns, environments. Wires the world (what is known and decided) to what does the
 * work with Nomad; decides nothing itself.
 *
 * Stopping leaves every runner in Nomad for the next start, which finds idle ones idle and used ones used.
 */
export class RunnerManager implements Runners, Lifecycle {
  readonly #deps: RunnerManagerDeps;
  readonly #world: World;
  readonly #background: Background;
  readonly #follower: Follower;
  readonly #registrar: Registrar;
  readonly #removals: Removals;
  readonly #catalog: Catalog;
  readonly #claims: Claims;
  readonly #pause: ClaimPause;
  readonly #unfit = new UnfitEnvironments();
  readonly #handles: Handles;
  readonly #lives: Lives;
  readonly #witness: Witness;
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: RunnerManagerDeps) {
    const { nomad, clock, randomness, log, environments: store } = deps;
    this.#deps = deps;
    const background = new Background(log);
    this.#background = background;
    this.#pause = new ClaimPause({
      clock,
      signal: background.signal,
      refillDelayMs: deps.refillDelayMs,
    });
    const documents = new JobDocuments();
    const world = new World({
      clock,
      randomness,
      startTimeoutMs: deps.pool.startTimeout * 1000,
      perform: (effect) => this.#perform(effect),
      changed: (changes) => [documents, this.#lives].forEach((part) => part.follow(changes)),
    });
    this.#world = world;
    this.#lives = new Lives(world.state);
    const witness = new Witness({ nomad, store, world, documents, log, background });
    this.#witness = witness;
    this.#handles = new Handles({
      clock,
      log,
      maxLifetimeSeconds: deps.runners.maxLifetime,
      giveUp: (id, reason) => world.dispatch({ kind: 'released', id, reason }),
      look: async (allocationId) => {
        if (!this.#follower.following) await witness.lookAtAllocation(allocationId);
      },
    });
    this.#registrar = new Registrar({ jobs: nomad.jobs, world, log, background, pause: this.#pause });
    this.#removals = new Removals({
      jobs: nomad.jobs,
      clock,
      randomness,
      log,
      background,
      registered: (id) => this.#registrar.settled(id),
      onPurged: (id) => world.dispatch({ kind: 'purged', id }),
    });
    this.#catalog = new Catalog({
      store,
      world,
      removals: this.#removals,
      clock,
      randomness,
      log,
      background,
    });
    this.#follower = new Follower({
      nomad,
      clock,
      randomness,
      log,
      reconcileIntervalMs: deps.pool.reconcileInterval * 1000,
      read: (signal) => witness.read(signal),
      onListing: (listing) => witness.listing(listing),
      onEvent: (event) => witness.event(event),
      onUnreachable: () => world.dispatch({ kind: 'unreachable' }),
    });
    this.#claims = new Claims({
      nomad,
      clock,
      world,
      documents,
      isFollowing: () => this.#follower.following,
      handleOf: (id) => this.#handles.get(id),
      signal: background.signal,
    });
  }

  get state(): LifecycleState {
    return this.#state;
  }

  get ready(): boolean {
    return this.#world.state.synced;
  }

  get nomadReachable(): boolean {
    return this.#follower.following;
  }

  /** Begins to follow Nomad, and resolves at once: whether Nomad can be reached is told by `ready`. */
  start(): Promise<void> {
    assertNew('runners', this.#state);
    this.#state = 'running';
    this.#background.run((signal) => this.#follower.run(signal));
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
    return this.#pause.during(() => this.#claims.claim(options));
  }

  get(id: string): ClaimedRunner {
    this.#assertReady();
    const runnerId = parseRunnerId(id)?.runnerId;
    const handle = runnerId === undefined ? undefined : this.#handles.get(runnerId);
    if (!handle) throw unknownRunner(id);
    return handle;
  }

  async return(id: string): Promise<void> {
    this.#assertReady();
    const runnerId = parseRunnerId(id)?.runnerId;
    if (runnerId !== undefined && this.#handles.get(runnerId)) {
      this.#world.dispatch({ kind: 'released', id: runnerId, reason: 'returned' });
      await this.#removals.confirm(runnerId);
      return;
    }
    if (runnerId === undefined || !this.#removals.isUnreported(runnerId)) throw unknownRunner(id);
    await this.#removals.confirmAgain(runnerId);
  }

  statistics(): EnvironmentStatistics[] {
    this.#assertReady();
    return createStatistics(this.#world.state, this.#unfit);
  }

  environments(): Environment[] {
    this.#assertReady();
    return this.#catalog.list();
  }

  environment(id: EnvironmentId): Environment {
    this.#assertReady();
    return this.#catalog.get(id);
  }

  async refreshEnvironments(signal?: AbortSignal): Promise<void> {
    this.#assertReady();
    await this.#catalog.refresh(signal);
  }

  async putEnvironment(environment: Environment): Promise<'created' | 'replaced' | 'unchanged'> {
    this.#assertReady();
    return this.#catalog.put(environment);
  }

  async deleteEnvironment(id: EnvironmentId): Promise<void> {
    this.#assertReady();
    await this.#catalog.delete(id);
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
      ? this.#lives.listen(listener)
      : () => undefined;
  }

  /**
   * A check found that an idle runner answers wrongly: it is replaced, and its pool says why. False, and nothing is
   * changed, where the runner is not idle any more; a claim under way wins.
   */
  replaceIdle(id: RunnerId, reason: string): boolean {
    const isIdle = runnerOf(this.#world.state, id)?.phase.name === 'idle';
    if (!isIdle || this.#state !== 'running') return false;
    this.#deps.log.warn('an idle runner answers wrongly and is replaced', { runnerId: id, reason });
    this.#world.dispatch({ kind: 'checked', id, fault: reason });
    return true;
  }

  /** A check found that a runner answers as it has to, so its pool has no more reason to doubt its kind. */
  confirmIdle(id: RunnerId): void {
    this.#world.dispatch({ kind: 'checked', id, fault: undefined });
  }

  onGone(listener: (id: RunnerId) => void): () => void {
    return this.#handles.onGone(listener);
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
    this.#world.stop();
    this.#handles.stop();
    this.#lives.stop();
    await this.#background.stop();
    this.#state = 'stopped';
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'register':
        this.#registrar.register(effect.id);
        return;
      case 'purge':
        this.#removals.add(effect.id);
        return;
      case 'inspect':
        this.#witness.look(effect.id);
        return;
      case 'inspect-template':
        this.#witness.lookAtTemplate(effect.id);
        return;
      case 'restore':
        this.#catalog.restore(effect.id);
        return;
      case 'claimed':
        this.#handles.handOut(this.#world.state, effect.id);
        return;
      case 'gone':
        this.#handles.takeBack(effect.id, effect.reason);
    }
  }
}
