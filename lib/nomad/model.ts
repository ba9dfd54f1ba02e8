import type { AllocationId } from '../base/ids.js';
import type { Meta, WireJob } from './wire.js';

/**
 * What the rest of the service sees of Nomad: its objects in our spelling, with only the fields that decide something.
 *
 * `modifyIndex` orders observations of one object: an observation with an index not above the known one is old news,
 * whatever path it came by. Job documents are passed through as `WireJob`, opaque to all but the two mapping files.
 */

export type ClientStatus = 'pending' | 'running' | 'complete' | 'failed' | 'lost' | 'unknown';
export type DesiredStatus = 'run' | 'stop' | 'evict';

export interface Allocation {
  readonly id: AllocationId;
  readonly jobId: string;
  readonly nodeId: string;
  readonly clientStatus: ClientStatus;
  readonly desiredStatus: DesiredStatus;
  /** Nomad's words for the status, for people. */
  readonly description: string;
  readonly createIndex: number;
  readonly modifyIndex: number;
  /** The allocation that this one replaces or is replaced by, where Nomad names it. */
  readonly previousAllocation: AllocationId | undefined;
  readonly nextAllocation: AllocationId | undefined;
  /** By task name; undefined where the answer left task states out or none exist yet. */
  readonly tasks: Readonly<Record<string, TaskState>> | undefined;
  /** Undefined where the answer held no resources (rows of lists without `resources=true`). */
  readonly ports: readonly MappedPort[] | undefined;
}

export interface MappedPort {
  readonly label: string;
  /** Port inside the runner. */
  readonly exposedPort: number;
  readonly hostIp: string;
  readonly hostPort: number;
}

export interface TaskState {
  readonly state: 'pending' | 'running' | 'dead';
  readonly failed: boolean;
  /** How often Nomad started the task again. A rise means that everything the task held is gone. */
  readonly restarts: number;
  /** RFC 3339, as Nomad's clock has it; compared for equality only. */
  readonly startedAt: string | undefined;
  readonly lastRestart: string | undefined;
  /** Oldest first; Nomad keeps the last ten. */
  readonly events: readonly TaskEvent[];
}

export interface TaskEvent {
  readonly type: string;
  readonly message: string;
  readonly exitCode: number | undefined;
  /** Nomad's own evidence that the task ran out of memory. */
  readonly oomKilled: boolean;
}

export interface Evaluation {
  readonly id: string;
  readonly jobId: string;
  readonly status: 'pending' | 'complete' | 'failed' | 'canceled' | 'blocked';
  readonly statusDescription: string;
  readonly triggeredBy: string;
  readonly createIndex: number;
  readonly modifyIndex: number;
  readonly blockedEvaluation: string | undefined;
  readonly nextEvaluation: string | undefined;
  /** By group name; empty where everything was placed. */
  readonly failedGroups: Readonly<Record<string, PlacementFailure>>;
}

export interface PlacementFailure {
  readonly nodesEvaluated: number;
  readonly nodesExhausted: number;
  readonly nodesFiltered: number;
  /** Dimension (`cpu`, `memory`, …) → nodes that lacked it. */
  readonly exhaustedDimensions: Readonly<Record<string, number>>;
  /** Constraint (`missing drivers`, …) → nodes that it ruled out. */
  readonly filteredConstraints: Readonly<Record<string, number>>;
}

export interface JobRow {
  readonly id: string;
  readonly status: string;
  readonly stop: boolean;
  readonly createIndex: number;
  readonly modifyIndex: number;
  readonly jobModifyIndex: number;
  /** Job-level meta; undefined where it was not asked for. */
  readonly meta: Readonly<Meta> | undefined;
}

export interface NomadNode {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  readonly status: 'initializing' | 'ready' | 'down' | 'disconnected';
  readonly eligible: boolean;
  readonly draining: boolean;
  readonly modifyIndex: number;
}

export interface VariableRow {
  readonly path: string;
  readonly modifyIndex: number;
}

export interface Variable extends VariableRow {
  readonly items: Readonly<Record<string, string>>;
}

/** One event of the stream. Decide by the payload, never by Nomad's event type. */
export type NomadEvent =
  | { readonly topic: 'allocation'; readonly index: number; readonly allocation: Allocation }
  | { readonly topic: 'evaluation'; readonly index: number; readonly evaluation: Evaluation }
  | { readonly topic: 'job'; readonly index: number; readonly job: WireJob }
  | { readonly topic: 'node'; readonly index: number; readonly node: NomadNode };

/** What registering a job answered; `jobModifyIndex` is the one to enforce next time. */
export interface Registration {
  readonly evaluationId: string;
  readonly jobModifyIndex: number;
  readonly warnings: string;
}

/** How an exec ended. `closed` without an exit is a failure, whatever its code; the caller asks the allocation why. */
export type ExecEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string };
