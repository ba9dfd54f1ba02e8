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
  | 'service-stopping';

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
