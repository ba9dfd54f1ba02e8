import type { AllocationId } from '../base/ids.js';
import type {
  Allocation,
  Evaluation,
  ExecEnd,
  JobRow,
  NomadEvent,
  NomadNode,
  Registration,
  Variable,
  VariableRow,
} from './model.js';
import type { WireJob } from './wire.js';

/**
 * What the service asks of Nomad, one interface per resource. `NomadClient` (client.ts) implements it over HTTP.
 *
 * Every call has a time limit and rejects with one of NOMAD_UNREACHABLE, NOMAD_REFUSED (403), NOMAD_CONFLICT
 * (check-and-set), NOMAD_REJECTED (Nomad's text is in the message), NOMAD_OVERLOADED (429, no leader), NOMAD_NOT_FOUND,
 * NOMAD_PROTOCOL (an answer that is not what Nomad's API promises), with the reason of the caller's signal, with
 * INVALID_CONFIG where a TLS file cannot be read, or with STOPPED once the client was stopped. With several addresses the
 * time limit holds for each that is tried.
 */
export interface Nomad {
  readonly jobs: NomadJobs;
  readonly evaluations: NomadEvaluations;
  readonly allocations: NomadAllocations;
  readonly nodes: NomadNodes;
  readonly variables: NomadVariables;
  readonly events: NomadEvents;
  /** Address of the leader, or NOMAD_OVERLOADED where there is none: a cheap check that Nomad answers. */
  leader(signal?: AbortSignal): Promise<string>;
  /** Opens a command in a task. Resolves once the socket is open, which says nothing about the command yet. */
  openExec(options: ExecOptions): Promise<ExecSession>;
}

export interface JobListOptions {
  readonly prefix?: string;
  /** Nomad's filter expression, for example `any TaskGroups as tg { … }`. */
  readonly filter?: string;
  /** Also answer job-level meta. */
  readonly meta?: boolean;
  readonly signal?: AbortSignal;
}

export interface RegisterOptions {
  /** Fail with NOMAD_CONFLICT unless the job has this index now; 0 means that it must not exist. */
  readonly enforceIndex?: number;
  readonly signal?: AbortSignal;
}

export interface NomadJobs {
  /** All pages. */
  list(options?: JobListOptions): Promise<JobRow[]>;
  /** The whole job, or undefined where there is none. */
  get(jobId: string, signal?: AbortSignal): Promise<WireJob | undefined>;
  register(job: WireJob, options?: RegisterOptions): Promise<Registration>;
  /** Stops and purges; a job that is not there is no failure. The evaluation id is undefined then. */
  purge(jobId: string, signal?: AbortSignal): Promise<{ evaluationId: string | undefined }>;
  /** Allocations of one job, without resources. */
  allocations(jobId: string, signal?: AbortSignal): Promise<Allocation[]>;
  /** Turns an HCL job into JSON on the server. */
  parse(hcl: string, signal?: AbortSignal): Promise<WireJob>;
}

export interface NomadEvaluations {
  get(evaluationId: string, signal?: AbortSignal): Promise<Evaluation | undefined>;
}

export interface AllocationListOptions {
  readonly filter?: string;
  /** Also answer task states and ports. */
  readonly details?: boolean;
  readonly signal?: AbortSignal;
}

export interface NomadAllocations {
  /** All pages. */
  list(options?: AllocationListOptions): Promise<Allocation[]>;
  get(id: AllocationId, signal?: AbortSignal): Promise<Allocation | undefined>;
}

export interface NomadNodes {
  list(signal?: AbortSignal): Promise<NomadNode[]>;
}

export interface NomadVariables {
  /**
   * All whose path begins with `prefix`, without what they hold. Those that the token may not list are left out without a
   * word, so that an empty list is no proof that there are none.
   */
  list(prefix: string, signal?: AbortSignal): Promise<VariableRow[]>;
  get(path: string, signal?: AbortSignal): Promise<Variable | undefined>;
  /** Check-and-set: NOMAD_CONFLICT unless the variable has this `modifyIndex` now (0: must not exist). */
  put(
    path: string,
    items: Readonly<Record<string, string>>,
    options?: { cas?: number; signal?: AbortSignal },
  ): Promise<Variable>;
  /** Removing one that is not there is no failure. */
  remove(path: string, options?: { cas?: number; signal?: AbortSignal }): Promise<void>;
}

export type EventTopic = 'Allocation' | 'Evaluation' | 'Job' | 'Node';

export interface NomadEvents {
  /**
   * Opens the event stream. Yields a gap-free run of batches (one line of the stream each, heartbeats dropped) until
   * `signal` aborts, then returns; throws when the stream ends, breaks, holds a line that is no JSON, or stays silent
   * for longer than the heartbeat limit. After a throw the caller must list again: a gap cannot be seen from inside.
   * It is read whether or not somebody iterates, by one consumer. The request may stay without response headers until
   * something happens, so `opened` resolves with the headers or half a second after it was sent, and rejects where the
   * iterator throws before that.
   */
  subscribe(options: { topics: readonly EventTopic[]; signal: AbortSignal }): EventSubscription;
}

export interface EventSubscription extends AsyncIterable<readonly NomadEvent[]> {
  /** Resolves once Nomad has the request, so that whatever is listed afterwards is not older than the stream. */
  readonly opened: Promise<void>;
}

export interface ExecOptions {
  readonly allocationId: AllocationId;
  readonly task: string;
  /** The argument vector. It travels in the URL and in Nomad's logs: keep it short and free of secrets. */
  readonly command: readonly string[];
  readonly tty: boolean;
  /** Ends the opening only; an open session is ended with `destroy`. */
  readonly signal?: AbortSignal;
}

/**
 * One open exec socket.
 *
 * Output is delivered to the one handler set by `onOutput`, in order, from the moment it is set (what came before is
 * kept for it). `end` resolves exactly once, after all output was delivered; it never rejects.
 */
export interface ExecSession {
  /** Sets the handler, in place of an earlier one. Not much is read before the first is set. */
  onOutput(handler: (stream: 'stdout' | 'stderr', chunk: Buffer) => void): void;
  readonly end: Promise<ExecEnd>;
  /** Queues input. Resolves when the socket's buffer is low enough for more; never rejects. */
  write(chunk: Uint8Array): Promise<void>;
  /** End of standard input. Without a TTY a command does not end before this was sent. */
  closeStdin(): void;
  /** With a TTY only. */
  resize(columns: number, rows: number): void;
  /** Stops and restarts reading from Nomad: back-pressure onto the program. */
  pause(): void;
  resume(): void;
  /** Drops the socket. The process in the task may live on: whoever started it ends it. */
  destroy(): void;
}
