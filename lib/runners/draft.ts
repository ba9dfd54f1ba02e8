import type { EnvironmentId, RunnerId } from '../base/ids.js';
import type { StoredEnvironment } from '../environments/store.js';
import type { Context, Effect } from './observation.js';
import type { Changes, ClusterView, Counts, Grave, NodeRecord, Phase, Pool, Runner, State } from './state.js';
import { countOf, environmentOf, HEALTHY, NO_COUNTS } from './state.js';

/** What `reconcile` answers. */
export interface Step {
  readonly changes: Changes;
  readonly effects: readonly Effect[];
  /** Time of the next `tick` that this step asks for, if any. */
  readonly wakeAt: number | undefined;
}

/**
 * A state with the changes of one observation laid over it. Reads see the changes; the state beneath stays as it is.
 * The counts of a pool follow its members here and nowhere else.
 */
export class Draft {
  readonly context: Context;
  /** Sequence of this observation. */
  readonly sequence: number;
  /** Environments that the plan has to look at again. */
  readonly touched = new Set<EnvironmentId>();
  readonly #state: State;
  readonly #pools = new Map<EnvironmentId, Pool | undefined>();
  readonly #members = new Map<RunnerId, Runner | undefined>();
  /** Runners that are new with this observation, by environment. */
  readonly #added = new Map<EnvironmentId, Set<RunnerId>>();
  readonly #graves = new Map<RunnerId, Grave | undefined>();
  readonly #nodes = new Map<string, NodeRecord | undefined>();
  readonly #deletedTemplates = new Map<EnvironmentId, number | undefined>();
  readonly #effects: Effect[] = [];
  #scalars: Pick<Changes, 'synced' | 'reachable' | 'listedIndex' | 'cluster'> = {};
  #wakeAt: number | undefined;

  constructor(state: State, context: Context) {
    this.#state = state;
    this.context = context;
    this.sequence = state.sequence + 1;
  }

  get reachable(): boolean {
    return this.#scalars.reachable ?? this.#state.reachable;
  }

  get synced(): boolean {
    return this.#scalars.synced ?? this.#state.synced;
  }

  get cluster(): ClusterView {
    return this.#scalars.cluster ?? this.#state.cluster;
  }

  get listedIndex(): number {
    return this.#scalars.listedIndex ?? this.#state.listedIndex;
  }

  set(scalars: Pick<Changes, 'synced' | 'reachable' | 'listedIndex' | 'cluster'>): void {
    this.#scalars = { ...this.#scalars, ...scalars };
  }

  effect(effect: Effect): void {
    this.#effects.push(effect);
  }

  wake(at: number): void {
    this.#wakeAt = Math.min(at, this.#wakeAt ?? Infinity);
  }

  pool(id: EnvironmentId): Pool | undefined {
    return this.#pools.has(id) ? this.#pools.get(id) : this.#state.pools.get(id);
  }

  pools(): Pool[] {
    const ids = new Set([...this.#state.pools.keys(), ...this.#pools.keys()]);
    return [...ids].flatMap((id) => this.pool(id) ?? []);
  }

  /** Changes how a pool is doing, and has it planned again. */
  setPool(id: EnvironmentId, change: Partial<Omit<Pool, 'stored' | 'counts'>>): void {
    const pool = this.pool(id);
    if (!pool) return;
    this.#pools.set(id, { ...pool, ...change });
    this.touched.add(id);
  }

  /** Gives an environment its template: creates the pool, or counts the members anew where it has one. */
  setTemplate(stored: StoredEnvironment): void {
    const { id } = stored.environment;
    const known = this.pool(id);
    const pool: Pool = known ?? {
      stored,
      phase: 'wanted',
      counts: NO_COUNTS,
      ...HEALTHY,
      seen: this.sequence,
    };
    const isNewSpec = known?.stored.environment.specHash !== stored.environment.specHash;
    this.#pools.set(id, {
      ...pool,
      ...(isNewSpec ? HEALTHY : {}),
      stored,
      counts: this.members(id).reduce(
        (counts, runner) => shift(counts, countOf(runner, stored), 1),
        NO_COUNTS,
      ),
      seen: this.sequence,
    });
    this.#deletedTemplates.set(id, undefined);
    this.touched.add(id);
  }

  removePool(id: EnvironmentId, lastIndex: number): void {
    this.#pools.set(id, undefined);
    this.#deletedTemplates.set(id, lastIndex);
  }

  deletedTemplate(id: EnvironmentId): number | undefined {
    return this.#deletedTemplates.has(id)
      ? this.#deletedTemplates.get(id)
      : this.#state.deletedTemplates.get(id);
  }

  runner(id: RunnerId): Runner | undefined {
    return this.#members.has(id)
      ? this.#members.get(id)
      : this.#state.members.get(environmentOf(id))?.get(id);
  }

  /** The members of one pool, changes included. */
  members(id: EnvironmentId): Runner[] {
    const known = this.#state.members.get(id)?.keys() ?? [];
    const added = this.#added.get(id) ?? [];
    return [...known, ...added].flatMap((key) => this.runner(key) ?? []);
  }

  setRunner(runner: Runner): void {
    const { id, environmentId } = runner;
    this.#count(this.runner(id), runner);
    this.#members.set(id, runner);
    if (this.#state.members.get(environmentId)?.has(id)) return;
    const added = this.#added.get(environmentId) ?? new Set<RunnerId>();
    this.#added.set(environmentId, added);
    added.add(id);
  }

  setPhase(runner: Runner, phase: Phase): Runner {
    const next = { ...runner, phase };
    this.setRunner(next);
    return next;
  }

  /** Nomad confirmed that the job is gone. */
  bury(id: RunnerId): void {
    this.#count(this.runner(id), undefined);
    this.#members.set(id, undefined);
    this.#graves.set(id, { since: this.context.now, sequence: this.sequence });
  }

  /** Forgets a runner that never was in Nomad. */
  drop(id: RunnerId): void {
    this.#count(this.runner(id), undefined);
    this.#members.set(id, undefined);
  }

  grave(id: RunnerId): Grave | undefined {
    return this.#graves.has(id) ? this.#graves.get(id) : this.#state.graves.get(id);
  }

  graves(): ReadonlyMap<RunnerId, Grave> {
    return this.#state.graves;
  }

  forgetGrave(id: RunnerId): void {
    this.#graves.set(id, undefined);
  }

  node(id: string): NodeRecord | undefined {
    return this.#nodes.has(id) ? this.#nodes.get(id) : this.#state.nodes.get(id);
  }

  /** Nodes known before this observation. */
  nodeIds(): string[] {
    return [...this.#state.nodes.keys()];
  }

  readonly isNodeDown = (id: string): boolean => this.node(id)?.down ?? false;

  setNode(id: string, node: NodeRecord | undefined): void {
    this.#nodes.set(id, node);
  }

  step(): Step {
    return {
      changes: {
        sequence: this.sequence,
        ...this.#scalars,
        pools: this.#pools,
        members: this.#members,
        graves: this.#graves,
        nodes: this.#nodes,
        deletedTemplates: this.#deletedTemplates,
      },
      effects: this.#effects,
      wakeAt: this.#wakeAt,
    };
  }

  #count(before: Runner | undefined, after: Runner | undefined): void {
    const id = (before ?? after)?.environmentId;
    const pool = id === undefined ? undefined : this.pool(id);
    if (id === undefined || !pool) return;
    this.touched.add(id);
    const from = before && countOf(before, pool.stored);
    const to = after && countOf(after, pool.stored);
    if (from === to) return; // a listing tells of thousands that stay what they are
    let counts = pool.counts;
    if (from) counts = shift(counts, from, -1);
    if (to) counts = shift(counts, to, 1);
    this.#pools.set(id, { ...pool, counts });
  }
}

function shift(counts: Counts, key: keyof Counts, by: 1 | -1): Counts {
  return { ...counts, [key]: counts[key] + by };
}
