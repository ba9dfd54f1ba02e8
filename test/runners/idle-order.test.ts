import { expect } from 'chai';
import fc from 'fast-check';
import type { ReplicaId, RunnerId } from '../../lib/base/ids.js';
import { replicaId } from '../../lib/base/ids.js';
import { Standalone } from '../../lib/cluster/standalone.js';
import { IdleOrder } from '../../lib/runners/idle-order.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import type { Observation } from '../../lib/runners/observation.js';
import type { Changes, MutableState, Phase, Runner } from '../../lib/runners/state.js';
import { commit, createState, NOT_READ } from '../../lib/runners/state.js';
import { anEnvironment } from '../support/environments.js';
import { startRunners } from '../support/runners.js';
import { CountingMap } from '../support/counting-map.js';
import { Truth } from '../support/truth.js';

const ENVIRONMENT = anEnvironment({ prewarmingPoolSize: 6 });
const { id: ENVIRONMENT_ID, specHash } = ENVIRONMENT;
const idOf = (n: number): RunnerId => `7-00000000-0000-4000-8000-${String(n).padStart(12, '0')}` as RunnerId;

/** A state with a template, and an order that follows it. */
function world(isPreferred: (id: RunnerId) => boolean = () => true) {
  const state = createState();
  const order = new IdleOrder(state, isPreferred);
  const apply = (changes: Changes): void => {
    commit(state, changes);
    order.follow(changes);
  };
  const observe = (observation: Observation): void => {
    const context = {
      now: 0,
      startTimeoutMs: 1,
      orphanTimeoutMs: 600_000,
      newRunnerId: () => idOf(99),
      random: () => 0,
    };
    apply(reconcile(state, observation, context).changes);
  };
  const put = (n: number, runner: Runner | undefined): void =>
    apply({ ...NOTHING, members: new Map([[idOf(n), runner]]) });
  const truth = new Truth();
  truth.setTemplate(ENVIRONMENT);
  observe({ kind: 'listing', listing: { ...truth.listing(0), runners: [], allocations: [] } });
  return { state, order, observe, put, truth };
}

const none = new Map();
const NOTHING: Changes = {
  sequence: 1,
  pools: none,
  members: none,
  graves: none,
  nodes: none,
  deletedTemplates: none,
};

function runner(n: number, phase: Phase, createIndex: number, spec = specHash): Runner {
  const truth = new Truth();
  truth.register(idOf(n), ENVIRONMENT_ID, spec);
  const record = {
    ...{ id: truth.newest(idOf(n))!.id, nodeId: 'n', clientStatus: 'running', desiredStatus: 'run' },
    ...{ createIndex, modifyIndex: createIndex, replaced: false, task: undefined, ports: undefined },
    ...{ outOfMemory: false, failure: undefined, seen: 0 },
  } as const;
  return {
    ...{ id: idOf(n), environmentId: ENVIRONMENT_ID, spec, phase },
    ...{ generation: 0, seen: 0, written: NOT_READ, allocations: [record] },
  } as Runner;
}

const IDLE: Phase = { name: 'idle' };
const STARTING: Phase = { name: 'starting', since: 0, blocked: undefined };

/** What a walk over the whole pool finds. */
function walked(state: MutableState, isPreferred: (id: RunnerId) => boolean): RunnerId | undefined {
  const idle = [...(state.members.get(ENVIRONMENT_ID)?.values() ?? [])]
    .filter(({ phase, spec }) => phase.name === 'idle' && spec === specHash)
    .map(({ id, allocations }) => ({ id, rank: isPreferred(id) ? 0 : 1, age: allocations[0]!.createIndex }));
  return idle.sort((a, b) => a.rank - b.rank || a.age - b.age || (a.id < b.id ? -1 : 1))[0]?.id;
}

/** A cluster in which one runner is assigned to this replica and all others to another. */
class OneAssigned extends Standalone {
  assigned: string | undefined;
  readonly listeners = new Set<() => void>();

  override assignee(name = ''): ReplicaId {
    return name === this.assigned ? this.self : replicaId('other');
  }

  override onChange(listener: () => void = () => undefined): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

describe('IdleOrder', () => {
  it('finds what a walk over the pool would find, after every change', () => {
    const change = fc.tuple(fc.nat(9), fc.nat(3), fc.nat(5));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 300 }), fc.nat(3), (changes, preference) => {
        let bits = preference;
        const isPreferred = (id: RunnerId): boolean => (Number(id.at(-1)) & bits) === 0;
        const { state, order, put } = world(isPreferred);
        for (const [n, kind, index] of changes) {
          if (kind === 0) put(n, undefined);
          else if (kind === 1) put(n, runner(n, STARTING, index));
          else if (n === 9) {
            bits = index;
            order.reorder();
          } else put(n, runner(n, IDLE, index, index === 5 ? 'another' : specHash));
          expect(order.next(ENVIRONMENT_ID)).to.equal(walked(state, isPreferred));
        }
      }),
    );
  });

  it('takes runners of an old specification in again when a change is taken back', () => {
    const { order, observe, put, truth } = world();
    put(1, runner(1, IDLE, 1));
    truth.setTemplate(anEnvironment({ image: 'another' }));
    observe({ kind: 'templates', startedAt: 9, templates: truth.listing(0).templates });
    expect(order.next(ENVIRONMENT_ID)).to.equal(undefined);
    truth.setTemplate(ENVIRONMENT);
    observe({ kind: 'templates', startedAt: 99, templates: truth.listing(0).templates });
    expect(order.next(ENVIRONMENT_ID)).to.equal(idOf(1));
  });

  it('walks over no pool for a change or a claim', () => {
    const { state, order, put } = world();
    for (let n = 0; n < 50; n += 1) put(n, runner(n, IDLE, n));
    const members = new CountingMap<RunnerId, Runner>(state.members.get(ENVIRONMENT_ID));
    state.members.set(ENVIRONMENT_ID, members);
    for (let n = 0; n < 40; n += 1) {
      expect(order.next(ENVIRONMENT_ID)).to.equal(idOf(n));
      put(n, runner(n, STARTING, n));
    }
    expect(members.walks).to.equal(0);
  });

  it('lets claims prefer the runners that are assigned to this replica', async () => {
    const cluster = new OneAssigned({ id: replicaId('self'), address: 'http://127.0.0.1:1' });
    const { claim, nomad, manager } = await startRunners({ cluster });
    const ids = nomad.runnerJobs(7);
    cluster.assigned = ids.at(-1);
    for (const listener of cluster.listeners) listener();
    expect((await claim()).id).to.equal(ids.at(-1));
    expect((await claim()).id).to.equal(ids[0]);
    await manager.stop();
    expect(cluster.listeners.size).to.equal(0);
  });
});
