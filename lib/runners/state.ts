/**
 * What the service knows of runners, as one value.
 *
 *            registered            allocation runs             taken
 *   (new) ──────────────▶ starting ───────────────▶ idle ───────────────▶ claiming
 *                            ▲     ◀───────────────  │  ◀─── untouched ───┤   │ Nomad has `used`
 *                            │      stopped, lost    │                    │   ▼
 *                            └──── restarted ────────┘                    │  used ◀── adopting (found used in Nomad)
 *                                                                         │   │
 *   every phase ── failed, retired, returned, gone, uncertain write ──▶ removing ── Nomad confirms ──▶ grave
 *
 * Among several replicas a used runner of another one is `foreign`:
 *
 *   starting, idle, claiming, adopting, used ── its job names another owner ──▶ foreign ── its job names us ──▶ adopting
 *   removing ── another replica has it after all ──▶ foreign       foreign ── its owner is dead for long ──▶ removing
 *
 * A runner that was handed out once is never idle again, and nothing leaves the grave. The value is changed by `commit`
 * alone, with what `reconcile` answered.
 *
 * Not here: what an observation does (reconcile.ts and what it calls), and everything that talks to Nomad.
 */
import type { AllocationId, EnvironmentId, ReplicaId, RunnerId } from '../base/ids.js';
import { replicaId } from '../base/ids.js';
import type { StoredEnvironment } from '../environments/store.js';
import type { AllocationRecord } from './allocation-record.js';
import type { GoneReason } from './runner.js';

/** Who shares the Nomad, as far as it decides anything here. */
export interface ClusterView {
  readonly self: ReplicaId;
  /** False: whatever is found used is our own. */
  readonly isShared: boolean;
  /** This replica fills pools, gives up what is unclaimed, and keeps templates. */
  readonly leads: boolean;
  /** Undefined while nobody knows who lives, so that nobody counts as dead. */
  readonly living: ReadonlySet<ReplicaId> | undefined;
}

export interface State {
  readonly cluster: ClusterView;
  /** Counts observations. Orders what is known against listings, which take their time. */
  readonly sequence: number;
  /** A listing was applied: what is not known does not exist. */
  readonly synced: boolean;
  /** Nomad answers and its events arrive. */
  readonly reachable: boolean;
  /** Highest index in the last job list: what is older and was not in that list is gone. */
  readonly listedIndex: number;
  readonly pools: ReadonlyMap<EnvironmentId, Pool>;
  /** Runners that exist, by environment. */
  readonly members: ReadonlyMap<EnvironmentId, ReadonlyMap<RunnerId, Runner>>;
  /** Runners whose removal Nomad confirmed, remembered because late events may speak of them. */
  readonly graves: ReadonlyMap<RunnerId, Grave>;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  /** Index of the last template job of each environment that was deleted: older events do not bring it back. */
  readonly deletedTemplates: ReadonlyMap<EnvironmentId, number>;
}

/** One environment and how its pool is doing. */
export interface Pool {
  readonly stored: StoredEnvironment;
  /** `deleting`: by us, or by another replica, which then does it. */
  readonly phase: 'wanted' | 'deleting' | 'deleting-elsewhere';
  readonly counts: Counts;
  /** Failures in a row, at most one for each time of waiting. */
  readonly failures: number;
  /** Starts that failed since the last one that succeeded. */
  readonly failedStarts: number;
  /** No registration before this time. */
  readonly retryAt: number;
  /** Why the last start or registration failed, or what a check found. */
  readonly trouble: string | undefined;
  /** Set while an idle runner proves nothing, since one was found that answers wrongly: until when at the latest. */
  readonly doubtUntil: number | undefined;
  /** Sequence at which Nomad was last known to have the template. */
  readonly seen: number;
}

/** Derived from the members: kept along so that no event costs a walk over the pool. */
export interface Counts {
  /** Claimable: idle and of the current specification. */
  readonly idle: number;
  /** Of the current specification, on their way. */
  readonly starting: number;
  /** Of the current specification, and without a place in Nomad. */
  readonly blocked: number;
  /** Of an old specification. */
  readonly outdatedIdle: number;
  readonly outdatedStarting: number;
  readonly used: number;
  readonly removing: number;
}

export interface Runner {
  readonly id: RunnerId;
  readonly environmentId: EnvironmentId;
  /** Hash of what it was made of; undefined on runners of another tool. */
  readonly spec: string | undefined;
  readonly phase: Phase;
  /** Raised whenever the life in it begins anew: by a restart or another allocation. A claim goes on with the same life. */
  readonly generation: number;
  /** Sequence at which Nomad was last known to have the job; undefined until it has. */
  readonly seen: number | undefined;
  /** The newest write to its job that is known. */
  readonly written: JobWrite;
  /** Newest first. */
  readonly allocations: readonly AllocationRecord[];
}

/** What one write to the job of a runner made of it. A write with a lower index is old news. */
export interface JobWrite {
  /** The job's `JobModifyIndex`; 0 where only rows of lists were read, which do not show who has it. */
  readonly index: number;
  readonly used: Use | undefined;
}

/** Who has a used runner. */
export interface Use {
  /** Seconds of inactivity that its client asked for. */
  readonly timeoutSeconds: number;
  /** The replica that claimed it; undefined where another tool did. */
  readonly owner: ReplicaId | undefined;
  /** Set where the owner took it only to purge it: why. */
  readonly ending: string | undefined;
}

/** Nothing is known of the job but that it is there. */
export const NOT_READ: JobWrite = { index: 0, used: undefined };

/** Times are of the injected monotonic clock. */
export type Phase =
  | { readonly name: 'starting'; readonly since: number; readonly blocked: string | undefined }
  | { readonly name: 'idle' }
  | {
      readonly name: 'claiming';
      readonly generation: number;
      readonly timeoutSeconds: number;
      /** Set when it was lost while the write was on its way. */
      readonly lost: GoneReason | undefined;
    }
  | { readonly name: 'adopting'; readonly since: number; readonly timeoutSeconds: number }
  | { readonly name: 'used'; readonly allocationId: AllocationId; readonly timeoutSeconds: number }
  | {
      readonly name: 'foreign';
      readonly use: Use;
      /** Since when its owner is not known to live. */
      readonly orphanedAt: number | undefined;
    }
  | { readonly name: 'removing'; readonly reason: RemovalReason };

/** Why a job is purged: what a client is told, or what concerns the pool alone. */
export type RemovalReason = GoneReason | 'retired' | 'failed' | 'orphaned' | 'purged-outside';

export interface Grave {
  readonly since: number;
  readonly sequence: number;
}

export interface NodeRecord {
  readonly modifyIndex: number;
  /** Down, or cut off from the servers. */
  readonly down: boolean;
  readonly seen: number;
}

/** What one observation changes. An undefined value removes the entry. */
export interface Changes {
  readonly sequence: number;
  readonly synced?: boolean;
  readonly reachable?: boolean;
  readonly listedIndex?: number;
  readonly cluster?: ClusterView;
  readonly pools: ReadonlyMap<EnvironmentId, Pool | undefined>;
  readonly members: ReadonlyMap<RunnerId, Runner | undefined>;
  readonly graves: ReadonlyMap<RunnerId, Grave | undefined>;
  readonly nodes: ReadonlyMap<string, NodeRecord | undefined>;
  readonly deletedTemplates: ReadonlyMap<EnvironmentId, number | undefined>;
}

/** The owner's handle on a state: the maps are its own. */
export interface MutableState extends State {
  sequence: number;
  synced: boolean;
  reachable: boolean;
  listedIndex: number;
  cluster: ClusterView;
  readonly pools: Map<EnvironmentId, Pool>;
  readonly members: Map<EnvironmentId, Map<RunnerId, Runner>>;
  readonly graves: Map<RunnerId, Grave>;
  readonly nodes: Map<string, NodeRecord>;
  readonly deletedTemplates: Map<EnvironmentId, number>;
}

const NOBODY = replicaId('alone');
/** The view of a service without others. */
export const ALONE: ClusterView = {
  self: NOBODY,
  isShared: false,
  leads: true,
  living: new Set([NOBODY]),
};

export function createState(cluster: ClusterView = ALONE): MutableState {
  return {
    cluster,
    sequence: 0,
    synced: false,
    reachable: false,
    listedIndex: 0,
    pools: new Map(),
    members: new Map(),
    graves: new Map(),
    nodes: new Map(),
    deletedTemplates: new Map(),
  };
}

/** Applies what `reconcile` answered. */
export function commit(state: MutableState, changes: Changes): void {
  state.sequence = changes.sequence;
  state.synced = changes.synced ?? state.synced;
  state.reachable = changes.reachable ?? state.reachable;
  state.listedIndex = changes.listedIndex ?? state.listedIndex;
  state.cluster = changes.cluster ?? state.cluster;
  overlay(state.pools, changes.pools);
  overlay(state.graves, changes.graves);
  overlay(state.nodes, changes.nodes);
  overlay(state.deletedTemplates, changes.deletedTemplates);
  for (const [id, runner] of changes.members) {
    const environmentId = environmentOf(id);
    const members = state.members.get(environmentId) ?? new Map<RunnerId, Runner>();
    if (runner) members.set(id, runner);
    else members.delete(id);
    if (members.size > 0) state.members.set(environmentId, members);
    else state.members.delete(environmentId);
  }
}

function overlay<K, V>(target: Map<K, V>, changes: ReadonlyMap<K, V | undefined>): void {
  for (const [key, value] of changes) {
    if (value === undefined) target.delete(key);
    else target.set(key, value);
  }
}

/** The environment that a runner id names. */
export function environmentOf(id: RunnerId): EnvironmentId {
  return Number(id.slice(0, id.indexOf('-'))) as EnvironmentId;
}

export function runnerOf(state: State, id: RunnerId): Runner | undefined {
  return state.members.get(environmentOf(id))?.get(id);
}

/** True where the runner is made as its environment is now; runners of another tool match templates of that tool. */
export function isCurrent(runner: Runner, stored: StoredEnvironment): boolean {
  if (runner.spec === undefined) return stored.foreign;
  return runner.spec === stored.environment.specHash;
}

/** How a pool is doing of which nothing bad is known. */
export const HEALTHY: Pick<Pool, 'failures' | 'failedStarts' | 'retryAt' | 'trouble' | 'doubtUntil'> = {
  failures: 0,
  failedStarts: 0,
  retryAt: 0,
  trouble: undefined,
  doubtUntil: undefined,
};

export const NO_COUNTS: Counts = {
  idle: 0,
  starting: 0,
  blocked: 0,
  outdatedIdle: 0,
  outdatedStarting: 0,
  used: 0,
  removing: 0,
};

/** The count that a runner belongs to. */
export function countOf(runner: Runner, stored: StoredEnvironment): keyof Counts {
  const { phase } = runner;
  switch (phase.name) {
    case 'starting':
      if (!isCurrent(runner, stored)) return 'outdatedStarting';
      return phase.blocked === undefined ? 'starting' : 'blocked';
    case 'idle':
      return isCurrent(runner, stored) ? 'idle' : 'outdatedIdle';
    case 'claiming':
    case 'adopting':
    case 'used':
      return 'used';
    case 'foreign':
      return phase.use.ending === undefined ? 'used' : 'removing';
    case 'removing':
      return 'removing';
  }
}
