import type { AllocationId, RunnerId } from '../base/ids.js';
import type { Environment } from '../environments/environment.js';
import type { MappedPort } from '../nomad/model.js';

/**
 * Why a runner is no longer its client's. Carried as the `details.reason` of the RUNNER_GONE error that aborts
 * `runnerSignal`.
 */
export type GoneReason =
  | 'returned'
  | 'inactive'
  | 'restarted'
  | 'allocation-stopped'
  | 'allocation-lost'
  | 'out-of-memory'
  | 'environment-deleted'
  | 'unconfirmed-write'
  | 'max-lifetime'
  | 'not-killable'
  | 'taken-over'
  | 'service-stopping';

/**
 * A runner that waits in its pool, in the life that its task has now: what may be prepared in it ahead of its client.
 */
export interface IdleRunner {
  readonly id: RunnerId;
  readonly environment: Environment;
  readonly allocationId: AllocationId;
  readonly task: string;
  /**
   * Aborts, with RUNNER_GONE, when this life is over: the task restarted or ended, or the runner is given up. A claim is no end of it; a
   * restart of an idle runner begins another life.
   */
  readonly taskSignal: AbortSignal;
}

/** Hears of the runners of all pools. Its calls return at once and throw nothing. */
export interface PoolListener {
  /** A runner is idle, in a life that was not told of before; those that wait longest are told first. */
  ready(runner: IdleRunner): void;
}

/**
 * A runner in the hands of a client: what executions and file transfers see of it.
 *
 * The handle stays valid for the whole claim; `runnerSignal` aborts, with RUNNER_GONE and a reason, the moment the
 * runner is no longer the client's.
 */
export interface ClaimedRunner {
  readonly id: RunnerId;
  readonly environment: Environment;
  readonly allocationId: AllocationId;
  readonly task: string;
  readonly mappedPorts: readonly MappedPort[];
  readonly runnerSignal: AbortSignal;
  /** Holds the inactivity timer back until the returned function is called (once; later calls do nothing). */
  beginActivity(): () => void;
  /**
   * What Nomad says of the task now: resolves as soon as the allocation is known to have restarted, stopped or run out
   * of memory since the claim, or with `alive` once `graceMs` passed without such news. An exec that ended with 137 or
   * 128 is checked with this before it is passed on.
   */
  whatHappened(graceMs: number): Promise<'alive' | 'restarted' | 'gone' | 'out-of-memory'>;
  /** Gives the runner up because it cannot be trusted any more: the client gets 410, Nomad purges the job. */
  abandon(reason: GoneReason): void;
}
