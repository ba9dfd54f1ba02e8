/** The fields of the API's objects that tests look at, as Nomad spells them. */
export interface AllocationJson {
  readonly ID: string;
  readonly JobID: string;
  readonly ClientStatus: string;
  readonly DesiredStatus: string;
  readonly DesiredDescription?: string;
  readonly ClientDescription?: string;
  readonly CreateIndex: number;
  readonly ModifyIndex: number;
  readonly PreviousAllocation?: string;
  readonly NextAllocation?: string;
  readonly TaskStates?: Readonly<Record<string, TaskStateJson>> | null;
  readonly AllocatedResources?: { readonly Shared: { readonly Ports: readonly PortJson[] | null } };
}

export interface TaskStateJson {
  readonly State: string;
  readonly Failed: boolean;
  readonly Restarts: number;
  readonly LastRestart: string | null;
  readonly StartedAt: string | null;
  readonly Events: readonly {
    readonly Type: string;
    readonly DisplayMessage: string;
    readonly Details: Readonly<Record<string, string>>;
  }[];
}

export interface PortJson {
  readonly Label: string;
  readonly To: number;
  readonly Value: number;
  readonly HostIP: string;
}

export interface RegisterJson {
  readonly EvalID: string;
  readonly JobModifyIndex: number;
  readonly Index: number;
}

export interface EvaluationJson {
  readonly ID: string;
  readonly JobID: string;
  readonly Status: string;
  readonly TriggeredBy: string;
  readonly StatusDescription?: string;
  readonly BlockedEval?: string;
  readonly FailedTGAllocs?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface JobJson {
  readonly ID: string;
  readonly [field: string]: unknown;
}

export interface EventJson {
  readonly Topic: string;
  readonly Type: string;
  readonly Key: string;
  readonly Index: number;
  readonly Payload: {
    readonly Allocation?: AllocationJson;
    readonly Evaluation?: EvaluationJson;
    readonly Job?: JobJson & { readonly Status: string };
    readonly Node?: {
      readonly Status: string;
      readonly SchedulingEligibility: string;
      readonly Drain: boolean;
    };
  };
}

export interface LineJson {
  readonly Index?: number;
  readonly Events?: readonly EventJson[];
}

export interface FrameJson {
  readonly stdout?: { readonly data?: string; readonly close?: boolean };
  readonly stderr?: { readonly data?: string; readonly close?: boolean };
  readonly exited?: boolean;
  readonly result?: { readonly exit_code?: number };
}
