/**
 * Changes of the state → which idle runner of an environment is claimed next: the one whose allocation is the oldest,
 * among those that this replica prefers, else among the others. The same order before and after a restart.
 *
 * The state decides, this only remembers where to look: an entry whose runner is no longer idle, or has another
 * allocation by now, is dropped when its turn comes. So a change costs a look at the runners that it names, a claim a few
 * steps, and neither a walk over the pool.
 *
 * Invariant: every claimable runner has an entry under its present age, whatever else is here.
 */
import { Heap } from '../base/heap.js';
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import type { StoredEnvironment } from '../environments/store.js';
import { currentOf } from './allocation-record.js';
import type { Changes, Runner, State } from './state.js';
import { environmentOf, isCurrent, runnerOf } from './state.js';

interface Entry {
  readonly id: RunnerId;
  readonly age: number;
}

/** Entries of runners that are not idle any more which are let be, beside as many as there are idle runners. */
const SPARE = 64;

/** The idle runners of one environment. */
interface Queue {
  readonly stored: StoredEnvironment;
  readonly preferred: Heap<Entry>;
  readonly others: Heap<Entry>;
  /** The age of each claimable runner, under which it has an entry. */
  readonly ages: Map<RunnerId, number>;
}

export class IdleOrder {
  readonly #state: State;
  readonly #isPreferred: (id: RunnerId) => boolean;
  readonly #queues = new Map<EnvironmentId, Queue>();

  /** `isPreferred` has to say the same of a runner until `reorder` is called. */
  constructor(state: State, isPreferred: (id: RunnerId) => boolean) {
    this.#state = state;
    this.#isPreferred = isPreferred;
  }

  /** The runner to claim next; it stays in the order for as long as the state has it idle. */
  next(environmentId: EnvironmentId): RunnerId | undefined {
    const queue = this.#queues.get(environmentId);
    if (!queue || this.#state.pools.get(environmentId)?.phase !== 'wanted') return undefined;
    return this.#first(queue, queue.preferred) ?? this.#first(queue, queue.others);
  }

  /** Follows what one step changed, once it is in force. */
  follow(changes: Changes): void {
    for (const [id, pool] of changes.pools) {
      if (!pool) this.#queues.delete(id);
      // Another template: what it was outdated under the one before may be claimable again.
      else if (pool.stored !== this.#queues.get(id)?.stored) this.#rebuild(id, pool.stored);
    }
    for (const [id, runner] of changes.members) {
      const queue = this.#queues.get(environmentOf(id));
      if (queue) this.#note(queue, id, runner);
    }
  }

  /** Another replica came or went: which runners are preferred is asked anew. */
  reorder(): void {
    for (const [id, { stored }] of this.#queues) this.#rebuild(id, stored);
  }

  #rebuild(id: EnvironmentId, stored: StoredEnvironment): void {
    const queue: Queue = {
      stored,
      preferred: new Heap(isOlder),
      others: new Heap(isOlder),
      ages: new Map(),
    };
    this.#queues.set(id, queue);
    for (const runner of this.#state.members.get(id)?.values() ?? []) this.#note(queue, runner.id, runner);
  }

  #note(queue: Queue, id: RunnerId, runner: Runner | undefined): void {
    const age = runner && claimableAge(runner, queue.stored);
    if (queue.ages.get(id) === age) return;
    if (age === undefined) {
      queue.ages.delete(id);
      return;
    }
    queue.ages.set(id, age);
    (this.#isPreferred(id) ? queue.preferred : queue.others).push({ id, age });
    const entries = queue.preferred.size + queue.others.size;
    if (entries > 2 * queue.ages.size + SPARE) this.#rebuild(environmentOf(id), queue.stored);
  }

  #first(queue: Queue, heap: Heap<Entry>): RunnerId | undefined {
    for (let entry = heap.first; entry; entry = heap.first) {
      const runner = runnerOf(this.#state, entry.id);
      if (runner && claimableAge(runner, queue.stored) === entry.age) return entry.id;
      heap.pop();
    }
    return undefined;
  }
}

/** The age of a runner that can be claimed; undefined for any other. */
function claimableAge(runner: Runner, stored: StoredEnvironment): number | undefined {
  if (runner.phase.name !== 'idle' || !isCurrent(runner, stored)) return undefined;
  return currentOf(runner.allocations)?.createIndex ?? Infinity;
}

function isOlder(a: Entry, b: Entry): boolean {
  return a.age < b.age || (a.age === b.age && a.id < b.id);
}
