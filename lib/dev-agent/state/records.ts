import type { Meta } from '../../nomad/wire.js';

/**
 * What the agent's state store holds, in Nomad's spelling, so that most records can be sent as they are.
 *
 * Records are never changed, only replaced: an event keeps the record of its moment and is rendered when somebody reads
 * it. Times are nanoseconds since 1970 as far as a JavaScript number can hold them.
 */
export interface Job {
  readonly ID: string;
  readonly Namespace: string;
  readonly Name: string;
  readonly Type: JobType;
  readonly Priority: number;
  readonly Datacenters: readonly string[];
  readonly Meta: Meta | null;
  readonly Status: JobStatus;
  readonly Stop: boolean;
  readonly Version: number;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
  readonly JobModifyIndex: number;
  readonly SubmitTime: number;
  readonly TaskGroups: readonly TaskGroup[];
  readonly [field: string]: unknown;
}

export type JobType = 'batch' | 'service';
export type JobStatus = 'pending' | 'running' | 'dead';

export interface TaskGroup {
  readonly Name: string;
  readonly Count: number;
  readonly Meta: Meta | null;
  readonly Networks: readonly Network[] | null;
  readonly RestartPolicy: RestartPolicy;
  readonly ReschedulePolicy: ReschedulePolicy;
  readonly EphemeralDisk: { readonly SizeMB: number; readonly [field: string]: unknown };
  readonly Tasks: readonly Task[];
  readonly [field: string]: unknown;
}

export interface Task {
  readonly Name: string;
  readonly Driver: string;
  readonly Config: Readonly<Record<string, unknown>> | null;
  readonly Env: Readonly<Record<string, string>> | null;
  readonly Meta: Meta | null;
  readonly Resources: Resources;
  readonly RestartPolicy: RestartPolicy;
  readonly KillTimeout: number;
  readonly [field: string]: unknown;
}

export interface Resources {
  readonly CPU: number;
  readonly MemoryMB: number;
  readonly MemoryMaxMB: number;
  readonly [field: string]: unknown;
}

/** Durations are nanoseconds. */
export interface RestartPolicy {
  readonly Attempts: number;
  readonly Delay: number;
  readonly Interval: number;
  readonly Mode: 'fail' | 'delay';
  readonly RenderTemplates: boolean;
}

export interface ReschedulePolicy {
  readonly Attempts: number;
  readonly Delay: number;
  readonly DelayFunction: string;
  readonly Interval: number;
  readonly MaxDelay: number;
  readonly Unlimited: boolean;
}

export interface Network {
  readonly Mode: string;
  readonly DynamicPorts: readonly Port[] | null;
  readonly [field: string]: unknown;
}

export interface Port {
  readonly Label: string;
  readonly To: number;
  readonly Value: number;
  readonly HostNetwork: string;
}

export type ClientStatus = 'pending' | 'running' | 'complete' | 'failed';
export type TaskStates = Readonly<Record<string, TaskState>>;

export interface Allocation {
  readonly ID: string;
  readonly Namespace: string;
  readonly Name: string;
  readonly EvalID: string;
  readonly NodeID: string;
  readonly NodeName: string;
  readonly JobID: string;
  /** The job as it was when the allocation was placed or last updated in place. */
  readonly Job: Job;
  readonly TaskGroup: string;
  /** Host ports by group network, in the order of the job's networks. */
  readonly Ports: readonly (readonly Port[])[];
  readonly DesiredStatus: 'run' | 'stop';
  readonly DesiredDescription: string;
  /** Set once the allocation is asked to move away. */
  readonly Migrate: boolean;
  readonly ClientStatus: ClientStatus;
  readonly ClientDescription: string;
  /** Undefined until the client reports for the first time. */
  readonly TaskStates: TaskStates | undefined;
  readonly PreviousAllocation: string;
  readonly NextAllocation: string;
  /** When the failed allocations before this one were replaced; decides whether another replacement is due. */
  readonly RescheduleTimes: readonly number[];
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
  readonly AllocModifyIndex: number;
  readonly CreateTime: number;
  readonly ModifyTime: number;
}

export interface TaskState {
  readonly State: 'pending' | 'running' | 'dead';
  readonly Failed: boolean;
  readonly Restarts: number;
  /** RFC 3339, or null. */
  readonly LastRestart: string | null;
  readonly StartedAt: string | null;
  readonly FinishedAt: string | null;
  readonly Events: readonly TaskEvent[];
  readonly TaskHandle: null;
}

export interface TaskEvent {
  readonly Type: string;
  readonly Time: number;
  readonly DisplayMessage: string;
  readonly Details: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export type EvaluationStatus = 'pending' | 'complete' | 'blocked' | 'canceled';

export interface Evaluation {
  readonly ID: string;
  readonly Namespace: string;
  readonly JobID: string;
  readonly Type: JobType;
  readonly Priority: number;
  readonly Status: EvaluationStatus;
  readonly TriggeredBy: string;
  readonly StatusDescription?: string;
  readonly JobModifyIndex?: number;
  readonly NodeID?: string;
  readonly NodeModifyIndex?: number;
  readonly PreviousEval?: string;
  readonly BlockedEval?: string;
  readonly QueuedAllocations?: Readonly<Record<string, number>>;
  readonly FailedTGAllocs?: Readonly<Record<string, PlacementMetrics>>;
  readonly SnapshotIndex?: number;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
  readonly CreateTime: number;
  readonly ModifyTime: number;
}

/** How placing went; of a failed placement it says what was missing. */
export interface PlacementMetrics {
  readonly NodesEvaluated: number;
  readonly NodesFiltered: number;
  readonly NodesExhausted: number;
  readonly ConstraintFiltered: Readonly<Record<string, number>> | null;
  readonly DimensionExhausted: Readonly<Record<string, number>> | null;
  readonly [field: string]: unknown;
}

export interface Node {
  readonly ID: string;
  readonly Name: string;
  readonly Status: 'ready';
  readonly SchedulingEligibility: 'eligible' | 'ineligible';
  readonly DrainStrategy: DrainStrategy | null;
  readonly LastDrain: Readonly<Record<string, unknown>> | null;
  readonly LastAllocUpdateIndex: number;
  readonly StatusUpdatedAt: number;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
}

export interface DrainStrategy {
  readonly Deadline: number;
  readonly ForceDeadline: string;
  readonly IgnoreSystemJobs: boolean;
  readonly StartedAt: string;
}

export interface Variable {
  readonly Namespace: string;
  readonly Path: string;
  readonly Items: Readonly<Record<string, string>>;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
  readonly CreateTime: number;
  readonly ModifyTime: number;
}

/** True once the server has given the allocation up or its tasks have ended. */
export function isTerminal(allocation: Allocation): boolean {
  return allocation.DesiredStatus === 'stop' || hasEnded(allocation);
}

/** True once nothing of the allocation runs any more. */
export function hasEnded(allocation: Allocation): boolean {
  return allocation.ClientStatus === 'complete' || allocation.ClientStatus === 'failed';
}
