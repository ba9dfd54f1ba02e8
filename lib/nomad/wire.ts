/**
 * Nomad's own shapes, as its HTTP API sends and takes them (Nomad 1.6). Only the fields that are read or written here
 * are named; a job is passed back as Nomad has it, unknown fields included.
 *
 * Nomad's spelling stays in this folder and in the two mapping files `environments/template.ts` and `runners/job.ts`.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Meta = Record<string, string>;

export interface WireJob {
  ID: string;
  Name?: string;
  Type?: string;
  Status?: string;
  Stop?: boolean;
  Version?: number;
  Namespace?: string;
  Region?: string;
  Meta?: Meta | null;
  CreateIndex?: number;
  ModifyIndex?: number;
  JobModifyIndex?: number;
  TaskGroups?: WireTaskGroup[] | null;
  [field: string]: unknown;
}

export interface WireTaskGroup {
  Name: string;
  Count?: number;
  Meta?: Meta | null;
  Networks?: WireNetwork[] | null;
  Tasks?: WireTask[] | null;
  [field: string]: unknown;
}

export interface WireTask {
  Name: string;
  Driver: string;
  Config?: Record<string, unknown> | null;
  Env?: Record<string, string> | null;
  Resources?: WireResources | null;
  [field: string]: unknown;
}

export interface WireResources {
  CPU?: number;
  MemoryMB?: number;
  MemoryMaxMB?: number;
  [field: string]: unknown;
}

export interface WireNetwork {
  Mode?: string;
  DynamicPorts?: WirePort[] | null;
  [field: string]: unknown;
}

export interface WirePort {
  Label: string;
  To?: number;
  Value?: number;
  [field: string]: unknown;
}

/** A row of `GET /v1/jobs`; `Meta` only with `?meta=true`. */
export interface WireJobRow {
  ID: string;
  Status: string;
  Stop: boolean;
  Type: string;
  CreateIndex: number;
  ModifyIndex: number;
  JobModifyIndex: number;
  Meta?: Meta | null;
}

export interface WireRegisterAnswer {
  EvalID: string;
  EvalCreateIndex: number;
  JobModifyIndex: number;
  Index: number;
  Warnings?: string;
}

/** One allocation, as the event stream and `GET /v1/allocation/<id>` give it; rows of lists lack the resources. */
export interface WireAllocation {
  ID: string;
  JobID: string;
  EvalID?: string;
  NodeID: string;
  NodeName?: string;
  TaskGroup: string;
  ClientStatus: string;
  ClientDescription?: string;
  DesiredStatus: string;
  DesiredDescription?: string;
  CreateIndex: number;
  ModifyIndex: number;
  PreviousAllocation?: string;
  NextAllocation?: string;
  TaskStates?: Record<string, WireTaskState> | null;
  AllocatedResources?: {
    Shared?: { Ports?: WireAllocatedPort[] | null; [field: string]: unknown } | null;
    [field: string]: unknown;
  } | null;
}

export interface WireAllocatedPort {
  Label: string;
  Value: number;
  To: number;
  HostIP: string;
}

export interface WireTaskState {
  State: string;
  Failed: boolean;
  Restarts: number;
  LastRestart?: string | null;
  StartedAt?: string | null;
  FinishedAt?: string | null;
  Events?: WireTaskEvent[] | null;
}

export interface WireTaskEvent {
  Type: string;
  Time: number;
  DisplayMessage?: string;
  ExitCode?: number;
  Signal?: number;
  Details?: Record<string, string> | null;
}

export interface WireEvaluation {
  ID: string;
  JobID: string;
  Status: string;
  StatusDescription?: string;
  TriggeredBy: string;
  Type: string;
  ModifyIndex: number;
  CreateIndex: number;
  BlockedEval?: string;
  NextEval?: string;
  FailedTGAllocs?: Record<string, WirePlacementFailure> | null;
}

export interface WirePlacementFailure {
  NodesEvaluated: number;
  NodesFiltered: number;
  NodesExhausted: number;
  ConstraintFiltered?: Record<string, number> | null;
  DimensionExhausted?: Record<string, number> | null;
  QuotaExhausted?: string[] | null;
  [field: string]: unknown;
}

export interface WireNode {
  ID: string;
  Name: string;
  Status: string;
  SchedulingEligibility: string;
  Drain?: boolean;
  Address?: string;
  ModifyIndex: number;
  [field: string]: unknown;
}

export interface WireVariable {
  Path: string;
  Namespace: string;
  CreateIndex: number;
  ModifyIndex: number;
  Items: Record<string, string>;
}

/** One line of the event stream that is no heartbeat. */
export interface WireEventLine {
  Index: number;
  Events: WireEvent[];
}

export interface WireEvent {
  Topic: string;
  Type: string;
  Key: string;
  Index: number;
  Payload: Record<string, unknown>;
}
