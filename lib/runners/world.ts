import type { Clock, Timer } from '../base/clock.js';
import type { Randomness } from '../base/ids.js';
import { newRunnerId } from '../base/ids.js';
import type { Cluster } from '../cluster/api.js';
import type { Context, Effect, Observation } from './observation.js';
import { reconcile } from './reconcile.js';
import type { Changes, ClusterView, State } from './state.js';
import { commit, createState } from './state.js';

export interface WorldDeps {
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly startTimeoutMs: number;
  readonly orphanTimeoutMs: number;
  readonly cluster: Cluster;
  /** Called for each effect after the change that asked for it is in force. Starts work, and throws nothing. */
  readonly perform: (effect: Effect) => void;
  /** Called once for each observation, after its effects. Throws nothing. */
  readonly changed: (changes: Changes) => void;
}

/**
 * The one place where the state lives and changes: feeds observations to the reconciler one at a time, hands its
 * effects on, and keeps the one timer that the state asks for.
 *
 * `dispatch` is synchronous, so what a caller reads from `state` right after it, before any `await`, is the outcome of
 * its own observation. An observation that an effect brings about is queued behind the one under way.
 */
export class World {
  readonly #deps: WorldDeps;
  readonly #state;
  readonly #context: Omit<Context, 'now'>;
  readonly #queue: Observation[] = [];
  readonly #watchers = new Set<() => void>();
  #busy = false;
  #wake: { readonly at: number; readonly timer: Timer } | undefined;
  #stopped = false;

  constructor(deps: WorldDeps) {
    const { randomness, startTimeoutMs, orphanTimeoutMs } = deps;
    this.#deps = deps;
    this.#state = createState(viewOf(deps.cluster));
    this.#context = {
      startTimeoutMs,
      orphanTimeoutMs,
      newRunnerId: (environmentId) => newRunnerId(environmentId, randomness),
      random: () => randomness.random(),
    };
  }

  get state(): State {
    return this.#state;
  }

  dispatch(observation: Observation): void {
    if (this.#stopped) return;
    this.#queue.push(observation);
    if (this.#busy) return;
    this.#busy = true;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#step(next);
    } finally {
      this.#busy = false;
    }
    for (const watcher of this.#watchers) watcher();
  }

  /** Resolves as soon as the condition holds after a change; asked once before. Rejects never: give it up by `signal`. */
  until(condition: (state: State) => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const watcher = (): void => {
        if (!signal.aborted && !condition(this.#state)) return;
        this.#watchers.delete(watcher);
        signal.removeEventListener('abort', watcher);
        resolve();
      };
      this.#watchers.add(watcher);
      signal.addEventListener('abort', watcher, { once: true });
      watcher();
    });
  }

  /** Ends the timer; later observations change nothing. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.timer.cancel();
    this.#wake = undefined;
  }

  #step(observation: Observation): void {
    // Time alone ends leading.
    const { cluster } = this.#deps;
    if (cluster.leads !== this.#state.cluster.leads) this.#apply({ kind: 'cluster', view: viewOf(cluster) });
    this.#apply(observation);
  }

  #apply(observation: Observation): void {
    const now = this.#deps.clock.monotonicMs();
    const { changes, effects, wakeAt } = reconcile(this.#state, observation, { ...this.#context, now });
    commit(this.#state, changes);
    if (wakeAt !== undefined) this.#armAt(wakeAt, now);
    for (const effect of effects) this.#deps.perform(effect);
    this.#deps.changed(changes);
  }

  #armAt(at: number, now: number): void {
    if (this.#wake && this.#wake.at <= at) return;
    this.#wake?.timer.cancel();
    const timer = this.#deps.clock.setTimer(Math.max(0, at - now), () => {
      this.#wake = undefined;
      this.dispatch({ kind: 'tick' });
    });
    this.#wake = { at, timer };
  }
}

/** What the reconciler is told of the others. */
export function viewOf(cluster: Cluster): ClusterView {
  const { self, isShared, isInformed, leads } = cluster;
  const living = isInformed ? new Set(cluster.living().map(({ id }) => id)) : undefined;
  return { self, isShared, leads, living };
}
