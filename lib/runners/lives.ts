/**
 * Changes of the state → which runners are idle in which life of their task, for those who prepare something in them.
 *
 *   idle (told of) ──▶ claiming ──▶ used ──▶ restarted, ended, given up: `taskSignal` aborts
 *     ▲      │ restarted, lost, given up: `taskSignal` aborts
 *     └──────┘ idle again, told of as another life
 *
 * Invariant: at most one life of a runner has a signal that is not aborted, and that is the life its task has now. A
 * life is remembered only once it was told of, so what nobody listens to costs nothing; a change costs a look at the
 * runners that it names and no more.
 *
 * Not here: what is prepared, and what a life that is over means to a client (handles.ts).
 */
import { setMaxListeners } from 'node:events';
import { ServiceError } from '../base/errors.js';
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import { DEFAULT_TASK } from '../environments/base-job.js';
import type { StoredEnvironment } from '../environments/store.js';
import { currentOf } from './allocation-record.js';
import { runnerGone } from './handle.js';
import { toldReason } from './leave.js';
import { lossOf } from './life.js';
import type { GoneReason, IdleRunner, PoolListener } from './runner.js';
import type { Changes, Runner, State } from './state.js';
import { isCurrent, runnerOf } from './state.js';

/** One life that was told of. */
interface Life {
  readonly runner: IdleRunner;
  readonly generation: number;
  readonly abort: AbortController;
}

/** One listener, and the lives that it was told of. */
interface Subscription {
  readonly listener: PoolListener;
  readonly told: WeakSet<Life>;
}

export class Lives {
  readonly #state: State;
  readonly #lives = new Map<RunnerId, Life>();
  readonly #subscriptions = new Set<Subscription>();
  /** The template of each pool when its idle runners were last looked at. */
  readonly #looked = new Map<EnvironmentId, StoredEnvironment>();

  readonly #isAssigned: (id: RunnerId) => boolean;

  /** `isAssigned`: whether what is prepared in a runner is to be prepared here; what is not is not told of. */
  constructor(state: State, isAssigned: (id: RunnerId) => boolean = () => true) {
    this.#state = state;
    this.#isAssigned = isAssigned;
  }

  /** Tells of what is idle now, and of every life to come, until the returned function is called. */
  listen(listener: PoolListener): () => void {
    const subscription: Subscription = { listener, told: new WeakSet() };
    this.#subscriptions.add(subscription);
    this.#tell(this.#all());
    return () => void this.#subscriptions.delete(subscription);
  }

  /** Follows what one step changed, once it is in force. */
  follow(changes: Changes): void {
    const candidates: Runner[] = [];
    for (const [id, runner] of changes.members) {
      this.#endIfOver(id, runner);
      if (runner) candidates.push(runner);
    }
    for (const [id, pool] of changes.pools) {
      if (pool?.stored === this.#looked.get(id)) continue;
      // Another template: what it was outdated under the one before may be good again.
      if (pool) this.#looked.set(id, pool.stored);
      else this.#looked.delete(id);
      candidates.push(...(this.#state.members.get(id)?.values() ?? []));
    }
    if (this.#subscriptions.size > 0) this.#tell(candidates);
  }

  /** What is assigned to whom has changed: idle lives of others end, those that are ours now are told of. */
  reassign(): void {
    for (const [id, life] of this.#lives) {
      if (runnerOf(this.#state, id)?.phase.name !== 'idle' || this.#isAssigned(id)) continue;
      this.#lives.delete(id);
      life.abort.abort(runnerGone(id, 'taken-over'));
    }
    if (this.#subscriptions.size > 0) this.#tell(this.#all());
  }

  #all(): Runner[] {
    return [...this.#state.members.values()].flatMap((members) => [...members.values()]);
  }

  /** Ends every life because the service stops, and tells nobody of anything any more. */
  stop(): void {
    const reason: GoneReason = 'service-stopping';
    const stopped = new ServiceError('STOPPED', 'the service is stopping', { details: { reason } });
    this.#subscriptions.clear();
    for (const life of this.#lives.values()) life.abort.abort(stopped);
    this.#lives.clear();
    this.#looked.clear();
  }

  #endIfOver(id: RunnerId, runner: Runner | undefined): void {
    const life = this.#lives.get(id);
    const reason = life && this.#endOf(life, runner);
    if (!reason) return;
    this.#lives.delete(id);
    life.abort.abort(runnerGone(id, reason));
  }

  /** Why a life is over, or undefined while it lasts. */
  #endOf({ runner: told, generation }: Life, runner: Runner | undefined): GoneReason | undefined {
    if (!runner) return 'allocation-stopped';
    const { phase } = runner;
    if (phase.name === 'removing') return toldReason(phase.reason);
    if (phase.name === 'foreign') return 'taken-over';
    if (phase.name === 'claiming' && phase.lost !== undefined) return phase.lost;
    if (phase.name !== 'starting' && runner.generation === generation) return undefined;
    const restarted =
      runner.generation !== generation && currentOf(runner.allocations)?.id === told.allocationId;
    const isNodeDown = (nodeId: string): boolean => this.#state.nodes.get(nodeId)?.down ?? false;
    return lossOf(runner, told.allocationId, restarted, isNodeDown) ?? 'allocation-stopped';
  }

  /** Tells of those that are idle and of the current specification, the oldest allocation first. */
  #tell(candidates: readonly Runner[]): void {
    const age = (runner: Runner): number => currentOf(runner.allocations)?.createIndex ?? Infinity;
    const idle = candidates.filter((runner) => this.#isClaimable(runner)).sort((a, b) => age(a) - age(b));
    for (const runner of idle) {
      if (runnerOf(this.#state, runner.id) !== runner) continue; // changed by whom was told just now
      const life = this.#lives.get(runner.id) ?? this.#begin(runner);
      if (life) this.#tellOf(life);
    }
  }

  #tellOf(life: Life): void {
    for (const { listener, told } of this.#subscriptions) {
      if (told.has(life)) continue;
      told.add(life);
      listener.ready(life.runner);
    }
  }

  #isClaimable(runner: Runner): boolean {
    const pool = this.#state.pools.get(runner.environmentId);
    if (runner.phase.name !== 'idle' || pool?.phase !== 'wanted') return false;
    return isCurrent(runner, pool.stored) && this.#isAssigned(runner.id);
  }

  #begin({ id, environmentId, allocations, generation }: Runner): Life | undefined {
    const environment = this.#state.pools.get(environmentId)?.stored.environment;
    const record = currentOf(allocations);
    if (!environment || !record) return undefined;
    const abort = new AbortController();
    setMaxListeners(0, abort.signal); // all that works in the runner listens
    const { signal: taskSignal } = abort;
    const runner: IdleRunner = { id, environment, allocationId: record.id, task: DEFAULT_TASK, taskSignal };
    const life: Life = { runner, generation, abort };
    this.#lives.set(id, life);
    return life;
  }
}
