import { deadline, orAbort, throwIfAborted } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { EnvironmentId, Randomness } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { Cluster } from '../cluster/api.js';
import type { Environment } from '../environments/environment.js';
import { isSameEnvironment } from '../environments/environment.js';
import type { EnvironmentStore } from '../environments/store.js';
import { ANSWER_MS, answerLimit } from './answer-limit.js';
import type { Background } from './background.js';
import { Persistent } from './persistent.js';
import type { Removals } from './removals.js';
import type { World } from './world.js';
import { unknownEnvironment } from './unknown.js';

export interface CatalogDeps {
  readonly store: EnvironmentStore;
  readonly world: World;
  /** Deletions are announced to the others, where there are any. */
  readonly cluster: Pick<Cluster, 'isShared'>;
  readonly removals: Removals;
  readonly clock: Clock;
  readonly randomness: Pick<Randomness, 'random'>;
  readonly log: Logger;
  readonly background: Background;
}

/** A claim whose write is on its way holds a deletion up for as long as Nomad takes to answer, and no longer. */
const CLAIMS_SETTLE_MS = 30_000;
/** Removals that a deletion waits for at once; more would be no faster, since fewer purges are under way at a time. */
const PARALLEL_ATTEMPTS = 50;
/** How often is looked whether a deletion goes on. */
const LOOK_MS = 250;

/**
 * The environments, and changes of them: each is written to Nomad first and then in force. Those of one environment happen one after
 * the other, so that the last one asked for is the one that stays.
 */
export class Catalog {
  readonly #deps: CatalogDeps;
  readonly #order = new Map<EnvironmentId, Promise<void>>();
  readonly #deletions = new Map<EnvironmentId, Persistent>();
  readonly #restoring = new Set<EnvironmentId>();

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
  }

  /** Those that are wanted, in order of id. */
  list(): Environment[] {
    return [...this.#deps.world.state.pools.values()]
      .filter((pool) => pool.phase === 'wanted')
      .map((pool) => pool.stored.environment)
      .sort((a, b) => a.id - b.id);
  }

  /** ENVIRONMENT_NOT_FOUND. */
  get(id: EnvironmentId): Environment {
    const pool = this.#deps.world.state.pools.get(id);
    if (pool?.phase === 'wanted') return pool.stored.environment;
    throw unknownEnvironment(id);
  }

  /** Reads the templates of Nomad again; what happened since it began wins over what it read. */
  async refresh(signal: AbortSignal | undefined): Promise<void> {
    const { store, world, clock } = this.#deps;
    using limit = answerLimit(clock, 'the templates');
    const startedAt = world.state.sequence;
    const waiting = signal ? AbortSignal.any([signal, limit.signal]) : limit.signal;
    const templates = await orAbort(store.list(waiting), waiting);
    world.dispatch({ kind: 'templates', startedAt, templates });
  }

  /** What Nomad has not confirmed in time is tried to its end; what was not even begun by then is dropped. */
  async put(environment: Environment): Promise<'created' | 'replaced' | 'unchanged'> {
    const { store, world, clock, background } = this.#deps;
    using limit = answerLimit(clock, `environment ${environment.id}`);
    const putting = this.#inOrder(environment.id, async () => {
      throwIfAborted(limit.signal);
      await this.#deletions.get(environment.id)?.attempt(background.signal);
      throwIfAborted(limit.signal);
      const known = world.state.pools.get(environment.id);
      const isWanted = known?.phase === 'wanted';
      if (isWanted && isSameEnvironment(known.stored.environment, environment)) return 'unchanged';
      const stored = await store.put(environment, background.signal);
      world.dispatch({ kind: 'environment-put', stored });
      return isWanted ? 'replaced' : 'created';
    });
    return await orAbort<'created' | 'replaced' | 'unchanged'>(putting, limit.signal);
  }

  /**
   * Tells the other replicas, then removes the runners first and the template last, so that a service that is killed in
   * between finds the environment rather than runners without one. What fails is tried on until it is done; the caller
   * learns of the first failure, and of it when nothing moves.
   */
  async delete(id: EnvironmentId): Promise<void> {
    const { world, clock, randomness, log, background } = this.#deps;
    const answered = new AbortController();
    const deleting = this.#inOrder(id, async () => {
      throwIfAborted(answered.signal);
      if (!world.state.pools.has(id)) {
        throw unknownEnvironment(id);
      }
      const deletion =
        this.#deletions.get(id) ??
        new Persistent({
          clock,
          random: () => randomness.random(),
          onTrouble: (error) =>
            log.warn('an environment could not be deleted, trying on', { environmentId: id, error }),
          work: (signal) => this.#delete(id, signal),
        });
      if (!this.#deletions.has(id)) {
        this.#deletions.set(id, deletion);
        background.run((signal) => deletion.run(signal));
      }
      await deletion.attempt(background.signal);
    });
    try {
      await this.#whileRunnersGo(id, deleting);
    } finally {
      answered.abort();
    }
  }

  /** Settles as the deletion does, or rejects where no runner of the environment went for as long as a client waits. */
  async #whileRunnersGo(id: EnvironmentId, deletion: Promise<void>): Promise<void> {
    const { world, clock } = this.#deps;
    const late = `the runners of environment ${id} are not all removed yet; it goes on, and may be asked for again`;
    const members = (): number => world.state.members.get(id)?.size ?? 0;
    let left = members();
    let movedMs = clock.monotonicMs();
    for (;;) {
      using look = deadline(clock, LOOK_MS, 'NOMAD_UNREACHABLE', late);
      try {
        await orAbort(deletion, look.signal);
        return;
      } catch (error) {
        if (!look.signal.aborted) throw error;
        if (members() < left) movedMs = clock.monotonicMs();
        else if (clock.monotonicMs() - movedMs >= ANSWER_MS) throw error;
        left = members();
      }
    }
  }

  async #delete(id: EnvironmentId, signal: AbortSignal): Promise<void> {
    const { store, world, cluster, removals, clock } = this.#deps;
    const known = world.state.pools.get(id)?.stored;
    const isUntold = cluster.isShared && known?.deleting === false;
    const stored = isUntold ? await store.markDeleting(known, signal) : known;
    if (stored) world.dispatch({ kind: 'environment-deleting', stored });
    const members = [...(world.state.members.get(id)?.values() ?? [])];
    const slots = new Slots(PARALLEL_ATTEMPTS);
    await Promise.all(members.map((runner) => slots.with(() => removals.attempt(runner.id))));
    const late = `the runners of environment ${id} are not all removed yet`;
    using limit = deadline(clock, CLAIMS_SETTLE_MS, 'NOMAD_UNREACHABLE', late);
    const waiting = AbortSignal.any([signal, limit.signal]);
    await orAbort(
      world.until((state) => !state.members.has(id), waiting),
      waiting,
    );
    const again = cluster.isShared ? await store.get(id, signal) : undefined;
    if (again?.deleting === false) {
      this.#deletions.delete(id);
      // Another replica was asked for the environment anew.
      world.dispatch({ kind: 'environment-put', stored: again });
      return;
    }
    await store.remove(id, signal);
    this.#deletions.delete(id);
    world.dispatch({ kind: 'environment-deleted', id });
  }

  /** Ends a deletion that a replica began, which may be gone by now. */
  resume(id: EnvironmentId): void {
    if (this.#deletions.has(id)) return;
    this.#deps.background.run(() =>
      this.delete(id).catch((error: unknown) => {
        // It is tried on in the background; there is nobody to tell.
        this.#deps.log.debug('a deletion is not ended yet', { environmentId: id, error });
      }),
    );
  }

  /** Registers a template again that died or vanished, unless somebody else did or it is no longer wanted. */
  restore(id: EnvironmentId): void {
    const { clock, randomness, log, background } = this.#deps;
    if (this.#restoring.has(id)) return;
    this.#restoring.add(id);
    const restoration = new Persistent({
      clock,
      random: () => randomness.random(),
      onTrouble: (error) =>
        log.warn('a template could not be registered again, trying on', { environmentId: id, error }),
      work: (signal) => this.#inOrder(id, () => this.#restore(id, signal)),
    });
    background.run((signal) => restoration.run(signal).finally(() => this.#restoring.delete(id)));
  }

  async #restore(id: EnvironmentId, signal: AbortSignal): Promise<void> {
    const { store, world, log } = this.#deps;
    const pool = world.state.pools.get(id);
    if (pool?.phase !== 'wanted') return;
    const found = await store.get(id, signal);
    if (found && !found.dead) return; // it is there after all; a listing or an event tells
    log.warn('the template of an environment was gone, registering it again', { environmentId: id });
    const stored = await store.restore(pool.stored, signal);
    world.dispatch({ kind: 'restored', stored });
  }

  async #inOrder<T>(id: EnvironmentId, work: () => Promise<T>): Promise<T> {
    const before = this.#order.get(id) ?? Promise.resolve();
    const result = before.then(work);
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    this.#order.set(id, settled);
    try {
      return await result;
    } finally {
      if (this.#order.get(id) === settled) this.#order.delete(id);
    }
  }
}
