/**
 * What the reconciler is told, and what it asks for in return.
 */
import type { EnvironmentId, ReplicaId, RunnerId } from '../base/ids.js';
import type { StoredEnvironment, TemplateListing } from '../environments/store.js';
import type { Allocation, Evaluation, NomadNode } from '../nomad/model.js';
import type { ClusterView, RemovalReason, Use } from './state.js';

/** What a runner's job says, from a list, an event or a look at the job. */
export interface RunnerJob {
  readonly id: RunnerId;
  readonly environmentId: EnvironmentId;
  readonly spec: string | undefined;
  /** Undefined while it is nobody's, and in rows of lists, which do not show it. */
  readonly used: Use | undefined;
  /** Index of the write that made it so; undefined in rows of lists. */
  readonly writtenAt: number | undefined;
  /** Somebody stopped the job. */
  readonly stopped: boolean;
  /** Nomad calls it dead: none of its allocations lives. */
  readonly ended: boolean;
  readonly modifyIndex: number;
}

/** Everything that Nomad holds, read at one time. */
export interface Listing {
  /** Sequence of the state before the first request of it was sent. */
  readonly startedAt: number;
  /** Highest index of the job list. */
  readonly index: number;
  readonly templates: TemplateListing;
  readonly runners: readonly RunnerJob[];
  /** All that are pending, running or unknown. */
  readonly allocations: readonly Allocation[];
  readonly nodes: readonly NomadNode[];
}

export type Observation =
  // What Nomad says by itself
  | { readonly kind: 'allocation'; readonly allocation: Allocation }
  | { readonly kind: 'evaluation'; readonly evaluation: Evaluation }
  | { readonly kind: 'runner-job'; readonly job: RunnerJob }
  | { readonly kind: 'template-job'; readonly stored: StoredEnvironment }
  | { readonly kind: 'node'; readonly node: NomadNode }
  | { readonly kind: 'listing'; readonly listing: Listing }
  | { readonly kind: 'templates'; readonly startedAt: number; readonly templates: TemplateListing }
  | { readonly kind: 'unreachable' }
  /** Who lives and who leads among the replicas. */
  | { readonly kind: 'cluster'; readonly view: ClusterView }
  // Answers to effects
  | { readonly kind: 'registered'; readonly id: RunnerId }
  | { readonly kind: 'not-registered'; readonly id: RunnerId; readonly reason: string }
  /** Its turn came when it was not to be registered any more, and nothing was sent. */
  | { readonly kind: 'withdrawn'; readonly id: RunnerId }
  | { readonly kind: 'purged'; readonly id: RunnerId }
  /** It was not purged, since another replica has it. */
  | { readonly kind: 'kept'; readonly job: RunnerJob }
  | {
      readonly kind: 'inspected';
      readonly id: RunnerId;
      readonly job: RunnerJob | undefined;
      readonly allocations: readonly Allocation[];
    }
  /** The template of an environment that was not known, as Nomad has it now. */
  | { readonly kind: 'template-found'; readonly stored: StoredEnvironment }
  /** The template of a known environment, read for a claim. */
  | { readonly kind: 'template-read'; readonly stored: StoredEnvironment }
  | { readonly kind: 'restored'; readonly stored: StoredEnvironment }
  // What clients and timers do
  | { readonly kind: 'taken'; readonly id: RunnerId; readonly timeoutSeconds: number }
  | { readonly kind: 'claim-settled'; readonly id: RunnerId; readonly outcome: ClaimOutcome }
  /** What was asked of a runner in its pool: `fault` is what is wrong with the answer, undefined where it is right. */
  | { readonly kind: 'checked'; readonly id: RunnerId; readonly fault: string | undefined }
  | { readonly kind: 'released'; readonly id: RunnerId; readonly reason: RemovalReason }
  | { readonly kind: 'environment-put'; readonly stored: StoredEnvironment }
  | { readonly kind: 'environment-deleting'; readonly stored: StoredEnvironment }
  | { readonly kind: 'environment-deleted'; readonly id: EnvironmentId }
  | { readonly kind: 'tick' };

/**
 * How the write of a claim ended: Nomad has it; somebody else was first; nothing was written; the job is not there; or
 * nobody knows whether Nomad has it.
 */
export type ClaimOutcome =
  | { readonly kind: 'written'; readonly jobModifyIndex: number }
  | { readonly kind: 'foreign'; readonly job: RunnerJob }
  | { readonly kind: 'untouched' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'uncertain' };

/**
 * From whom a job may be taken before it is purged: from nobody and from us (`pool`), from a replica that is dead, from
 * whoever has it. `nobody` needs no taking: we are alone, or our client has just returned it.
 */
export type TakenFrom = 'nobody' | 'pool' | 'anybody' | { readonly owner: ReplicaId | undefined };

export type Effect =
  /** Register the job of a new runner, made from the pool's template. */
  | { readonly kind: 'register'; readonly id: RunnerId }
  /** Purge a job until Nomad confirms, or until it is found to be another replica's. */
  | {
      readonly kind: 'purge';
      readonly id: RunnerId;
      readonly from: TakenFrom;
      readonly reason: RemovalReason;
    }
  /** Look at the job and the allocations of a runner of which only the name is known. */
  | { readonly kind: 'inspect'; readonly id: RunnerId }
  /** Look at a template of which only an event told, which may be a replay of long ago. */
  | { readonly kind: 'inspect-template'; readonly id: EnvironmentId }
  /** Register a template again that died or vanished. */
  | { readonly kind: 'restore'; readonly id: EnvironmentId }
  /** Go on with a deletion that a replica began and may not have ended. */
  | { readonly kind: 'delete-environment'; readonly id: EnvironmentId }
  /** A runner is a client's now. */
  | { readonly kind: 'claimed'; readonly id: RunnerId }
  /** A runner is its client's no more. */
  | { readonly kind: 'gone'; readonly id: RunnerId; readonly reason: RemovalReason };

/** What a reconciliation may ask besides the state: time, ids and chance, so that it stays a function of its arguments. */
export interface Context {
  /** Monotonic milliseconds. */
  readonly now: number;
  readonly startTimeoutMs: number;
  /** How long a runner whose owner is dead is kept for its client. */
  readonly orphanTimeoutMs: number;
  newRunnerId(environmentId: EnvironmentId): RunnerId;
  /** Uniform in [0, 1). */
  random(): number;
}
