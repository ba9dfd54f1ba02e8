import type { Clock } from '../base/clock.js';
import type { Randomness, RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { Cluster } from '../cluster/api.js';
import type { PoolConfig, RunnersConfig } from '../config/config.js';
import type { EnvironmentStore } from '../environments/store.js';
import type { Nomad } from '../nomad/api.js';
import { Background } from './background.js';
import { Catalog } from './catalog.js';
import { ClaimPause } from './claim-pause.js';
import { Claims } from './claims.js';
import { Follower } from './follow.js';
import { Handles } from './handles.js';
import { IdleOrder } from './idle-order.js';
import { JobDocuments } from './job-documents.js';
import { Lives } from './lives.js';
import { Locator } from './locator.js';
import type { Effect } from './observation.js';
import { Registrar } from './registrar.js';
import { Removals } from './removals.js';
import { Witness } from './witness.js';
import { viewOf, World } from './world.js';

export interface RunnerManagerDeps {
  readonly nomad: Nomad;
  /** Who else is on the same Nomad. */
  readonly cluster: Cluster;
  readonly environments: EnvironmentStore;
  readonly pool: Pick<PoolConfig, 'startTimeout' | 'reconcileInterval'>;
  readonly runners: Pick<RunnersConfig, 'maxLifetime' | 'orphanTimeout'>;
  /** How long after a claim the pools are refilled. Default 25. */
  readonly refillDelayMs?: number;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
}

/** What the runners of a service are made of. */
export interface Parts {
  readonly world: World;
  readonly background: Background;
  readonly follower: Follower;
  readonly removals: Removals;
  readonly catalog: Catalog;
  readonly claims: Claims;
  readonly pause: ClaimPause;
  readonly handles: Handles;
  readonly lives: Lives;
  readonly locator: Locator;
  /** Begins to follow who lives and who leads, until the returned function is called; tells once this one is fenced. */
  readonly followCluster: (onFenced: () => void) => () => void;
}

/** Wires the world (what is known and decided) to what does the work with Nomad. Starts nothing. */
export function createParts(deps: RunnerManagerDeps): Parts {
  const { nomad, cluster, clock, randomness, log, environments: store } = deps;
  const background = new Background(log);
  const pause = new ClaimPause({ clock, signal: background.signal, refillDelayMs: deps.refillDelayMs });
  const documents = new JobDocuments();
  const world: World = new World({
    clock,
    randomness,
    cluster,
    startTimeoutMs: deps.pool.startTimeout * 1000,
    orphanTimeoutMs: deps.runners.orphanTimeout * 1000,
    perform: (effect) => perform(effect),
    changed: (changes) => [order, documents, lives].forEach((part) => part.follow(changes)),
  });
  const isAssigned = (id: RunnerId): boolean => cluster.assignee(id) === cluster.self;
  const order = new IdleOrder(world.state, isAssigned);
  const lives = new Lives(world.state, isAssigned);
  const witness = new Witness({ nomad, store, world, documents, log, background });
  const handles = new Handles({
    clock,
    log,
    maxLifetimeSeconds: deps.runners.maxLifetime,
    giveUp: (id, reason) => world.dispatch({ kind: 'released', id, reason }),
    look: async (allocationId) => {
      if (!follower.following) await witness.lookAtAllocation(allocationId);
    },
  });
  const registrar = new Registrar({ jobs: nomad.jobs, cluster, world, log, background, pause });
  const removals = new Removals({
    jobs: nomad.jobs,
    cluster,
    clock,
    randomness,
    log,
    background,
    registered: (id) => registrar.settled(id),
    onPurged: (id) => world.dispatch({ kind: 'purged', id }),
    onKept: (job) => world.dispatch({ kind: 'kept', job }),
  });
  const catalog = new Catalog({ store, world, cluster, removals, clock, randomness, log, background });
  const follower = new Follower({
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
  const claims = new Claims({
    nomad,
    clock,
    world,
    order,
    cluster,
    store,
    documents,
    isFollowing: () => follower.following,
    handleOf: (id) => handles.get(id),
    signal: background.signal,
  });

  function perform(effect: Effect): void {
    switch (effect.kind) {
      case 'register':
        registrar.register(effect.id);
        return;
      case 'purge':
        removals.add(effect);
        return;
      case 'inspect':
        witness.look(effect.id);
        return;
      case 'inspect-template':
        witness.lookAtTemplate(effect.id);
        return;
      case 'restore':
        catalog.restore(effect.id);
        return;
      case 'delete-environment':
        catalog.resume(effect.id);
        return;
      case 'claimed':
        handles.handOut(world.state, effect.id);
        return;
      case 'gone':
        handles.takeBack(effect.id, effect.reason);
    }
  }

  function followCluster(onFenced: () => void): () => void {
    const tell = (): void => {
      if (cluster.isFenced) {
        onFenced();
        return;
      }
      order.reorder();
      world.dispatch({ kind: 'cluster', view: viewOf(cluster) });
      lives.reassign();
    };
    if (cluster.isShared) tell(); // what happened before the start
    return cluster.onChange(tell);
  }

  const locator = new Locator({ jobs: nomad.jobs, cluster, world, removals, clock, log, background });
  return {
    world,
    background,
    follower,
    removals,
    catalog,
    claims,
    pause,
    handles,
    lives,
    locator,
    followCluster,
  };
}
