import { randomUUID } from 'node:crypto';
import { ServiceError } from '../../lib/base/errors.js';
import type { AllocationId } from '../../lib/base/ids.js';
import { allocationId } from '../../lib/base/ids.js';
import type {
  AllocationListOptions,
  EventSubscription,
  ExecSession,
  JobListOptions,
  Nomad,
  NomadAllocations,
  NomadEvaluations,
  NomadEvents,
  NomadJobs,
  NomadNodes,
  NomadVariables,
  RegisterOptions,
} from '../../lib/nomad/api.js';
import type {
  Allocation,
  Evaluation,
  JobRow,
  NomadEvent,
  NomadNode,
  Registration,
  TaskState,
} from '../../lib/nomad/model.js';
import type { WireJob } from '../../lib/nomad/wire.js';
import { LIVING_ALLOCATIONS, USED_RUNNERS } from '../../lib/runners/recover.js';

/** One request, as hooks see it. */
export interface Call {
  readonly op:
    | 'jobs.list'
    | 'jobs.get'
    | 'register'
    | 'purge'
    | 'allocations.list'
    | 'allocations.get'
    | 'nodes.list'
    | 'subscribe'
    | 'leader';
  readonly id: string;
  readonly filter?: string | undefined;
}

type Hook = (call: Call) => void | Promise<void>;

/**
 * Nomad in memory, behind the interface of the client: jobs, allocations, nodes and the event stream, without HTTP.
 *
 * It behaves as a real server does by itself (a registered job is placed and runs, a purged one stops, a claim is
 * announced again in place), and a test stages the rest: `before` holds calls back or makes them fail, `after` loses
 * the answer of a call that got through, `muted` loses events, `cut` ends the streams, `tell` says anything at all.
 */
export class FakeNomad implements Nomad {
  index = 10;
  /** Allocations that there is room for. */
  capacity = Infinity;
  /** Whether registered jobs are placed and start by themselves. */
  autoStart = true;
  /** Events happen, and nobody is told. */
  muted = false;
  before: Hook = () => undefined;
  after: Hook = () => undefined;
  readonly calls: Call[] = [];
  /** Every event that was told. */
  readonly said: NomadEvent[] = [];
  readonly jobDocuments = new Map<string, WireJob>();
  readonly allocationsById = new Map<AllocationId, Allocation>();
  readonly nodesById = new Map<string, NomadNode>();
  readonly #streams = new Set<Stream>();

  constructor() {
    this.setNode('node-1');
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  readonly jobs: NomadJobs = {
    list: (options = {}) =>
      this.#call('jobs.list', options.prefix ?? '', () => this.#listJobs(options), options),
    get: (id) => this.#call('jobs.get', id, () => structuredClone(this.jobDocuments.get(id))),
    register: (job, options = {}) => this.#call('register', job.ID, () => this.#register(job, options)),
    purge: (id) => this.#call('purge', id, () => ({ evaluationId: this.purgeJob(id) })),
    allocations: (id) =>
      this.#call('allocations.list', id, () =>
        [...this.allocationsById.values()].filter((a) => a.jobId === id),
      ),
    parse: () => Promise.reject(new ServiceError('NOMAD_REJECTED', 'the fake parses no HCL')),
  };

  readonly evaluations: NomadEvaluations = { get: () => Promise.resolve(undefined) };

  readonly allocations: NomadAllocations = {
    list: (options = {}) => this.#call('allocations.list', '', () => this.#listAllocations(options), options),
    get: (id) => this.#call('allocations.get', id, () => this.allocationsById.get(id)),
  };

  readonly nodes: NomadNodes = {
    list: () => this.#call('nodes.list', '', () => [...this.nodesById.values()]),
  };

  readonly variables: NomadVariables = {
    get: () => Promise.resolve(undefined),
    put: () => Promise.reject(new ServiceError('NOMAD_REJECTED', 'the fake keeps no variables')),
    remove: () => Promise.resolve(),
  };

  readonly events: NomadEvents = {
    subscribe: ({ signal }): EventSubscription => {
      const stream = new Stream(signal, () => this.#streams.delete(stream));
      const opened = this.#call('subscribe', '', () => {
        if (!signal.aborted) this.#streams.add(stream);
      });
      opened.catch((error: unknown) => stream.fail(error));
      return { opened, [Symbol.asyncIterator]: () => stream };
    },
  };

  leader(): Promise<string> {
    return this.#call('leader', '', () => '127.0.0.1:4647');
  }

  openExec(): Promise<ExecSession> {
    return Promise.reject(new ServiceError('NOMAD_REJECTED', 'the fake runs nothing'));
  }

  /** Calls of one kind, by id. */
  callsOf(op: Call['op']): string[] {
    return this.calls.filter((call) => call.op === op).map((call) => call.id);
  }

  // --- What a test stages

  /** Puts an event on every open stream, true or not. */
  tell(...events: NomadEvent[]): void {
    if (this.muted) return;
    this.said.push(...events);
    for (const stream of this.#streams) stream.push(events);
  }

  /** Ends every open stream, as a lost connection does. */
  cut(): void {
    for (const stream of this.#streams) {
      stream.fail(new ServiceError('NOMAD_UNREACHABLE', 'the event stream ended mid-air'));
    }
  }

  setNode(id: string, change: Partial<NomadNode> = {}): void {
    this.index += 1;
    const node: NomadNode = {
      id,
      name: id,
      address: '127.0.0.1',
      status: 'ready',
      eligible: true,
      draining: false,
      ...change,
      modifyIndex: this.index,
    };
    this.nodesById.set(id, node);
    this.tell({ topic: 'node', index: this.index, node });
  }

  /** The newest allocation of a job. */
  allocationOf(jobId: string): Allocation {
    const all = [...this.allocationsById.values()].filter((allocation) => allocation.jobId === jobId);
    const newest = all.sort((a, b) => b.createIndex - a.createIndex)[0];
    if (!newest) throw new Error(`there is no allocation of ${jobId}`);
    return newest;
  }

  /** Makes an allocation of a job, pending. */
  place(jobId: string, change: Partial<Allocation> = {}): Allocation {
    this.index += 1;
    const allocation: Allocation = {
      id: allocationId(randomUUID()),
      jobId,
      nodeId: 'node-1',
      clientStatus: 'pending',
      desiredStatus: 'run',
      description: '',
      createIndex: this.index,
      modifyIndex: this.index,
      previousAllocation: undefined,
      nextAllocation: undefined,
      tasks: undefined,
      ports: this.#portsOf(jobId),
      ...change,
    };
    return this.#put(allocation);
  }

  /** Changes an allocation and tells of it. */
  update(id: AllocationId, change: Partial<Allocation>): Allocation {
    const known = this.allocationsById.get(id);
    if (!known) throw new Error(`there is no allocation ${id}`);
    this.index += 1;
    return this.#put({ ...known, ...change, modifyIndex: this.index });
  }

  /** The task of an allocation runs. */
  run(id: AllocationId): Allocation {
    const known = this.allocationsById.get(id)?.tasks?.['default-task'];
    const restarts = known?.restarts ?? 0;
    return this.update(id, {
      clientStatus: 'running',
      tasks: { 'default-task': task('running', { restarts }) },
    });
  }

  /** The task dies and is started again, as a real server tells it. */
  restart(jobId: string, { oomKilled = false } = {}): void {
    const { id, tasks } = this.allocationOf(jobId);
    const restarts = (tasks?.['default-task']?.restarts ?? 0) + 1;
    const change = { restarts, oomKilled, lastRestart: `restart ${restarts}` };
    this.update(id, { clientStatus: 'pending', tasks: { 'default-task': task('pending', change) } });
    this.update(id, { clientStatus: 'running', tasks: { 'default-task': task('running', change) } });
  }

  /** An evaluation of a job, as an event. */
  evaluate(jobId: string, change: Partial<Evaluation> = {}): Evaluation {
    this.index += 1;
    const evaluation: Evaluation = {
      id: randomUUID(),
      jobId,
      status: 'complete',
      statusDescription: '',
      triggeredBy: 'job-register',
      createIndex: this.index,
      modifyIndex: this.index,
      blockedEvaluation: undefined,
      nextEvaluation: undefined,
      failedGroups: {},
      ...change,
    };
    this.tell({ topic: 'evaluation', index: this.index, evaluation });
    return evaluation;
  }

  /** Registers a job from outside the service. */
  putJob(job: WireJob): WireJob {
    const known = this.jobDocuments.get(job.ID);
    this.index += 1;
    const stored: WireJob = {
      ...structuredClone(job),
      Status: 'running',
      Stop: job.Stop ?? false,
      Version: (known?.Version ?? -1) + 1,
      CreateIndex: known?.CreateIndex ?? this.index,
      ModifyIndex: this.index,
      JobModifyIndex: this.index,
    };
    this.jobDocuments.set(job.ID, stored);
    this.tell({ topic: 'job', index: this.index, job: structuredClone(stored) });
    return stored;
  }

  /** Purges a job, by whomever; tells what a real server tells. */
  purgeJob(id: string): string | undefined {
    if (!this.jobDocuments.delete(id)) return undefined;
    const evaluation = this.evaluate(id, { status: 'pending', triggeredBy: 'job-deregister' });
    for (const allocation of [...this.allocationsById.values()]) {
      if (allocation.jobId !== id || !isLive(allocation)) continue;
      this.update(allocation.id, { desiredStatus: 'stop' });
      this.update(allocation.id, { clientStatus: 'complete' });
    }
    return evaluation.id;
  }

  /** Ids of the jobs of an environment's runners, oldest first. */
  runnerJobs(environmentId: number): string[] {
    return [...this.jobDocuments.keys()].filter((id) => id.startsWith(`${environmentId}-`));
  }

  metaOf(jobId: string): Record<string, string> {
    const groups = this.jobDocuments.get(jobId)?.TaskGroups ?? [];
    return groups.find((group) => group.Name === 'config')?.Meta ?? {};
  }

  // --- What a server does

  async #call<T>(
    op: Call['op'],
    id: string,
    work: () => T,
    { filter }: { filter?: string | undefined } = {},
  ): Promise<T> {
    const call: Call = { op, id, filter };
    this.calls.push(call);
    await this.before(call);
    const result = work();
    await this.after(call);
    return result;
  }

  #register(job: WireJob, { enforceIndex }: RegisterOptions): Registration {
    const known = this.jobDocuments.get(job.ID);
    if (enforceIndex !== undefined && enforceIndex !== (known?.JobModifyIndex ?? 0)) {
      throw new ServiceError('NOMAD_CONFLICT', `Enforcing job modify index ${enforceIndex}: conflict`);
    }
    const stored = this.putJob(job);
    const isAlive = [...this.allocationsById.values()].some((a) => a.jobId === job.ID && isLive(a));
    if (isAlive) this.update(this.allocationOf(job.ID).id, {});
    else if (this.autoStart) this.#start(job.ID);
    return { evaluationId: randomUUID(), jobModifyIndex: stored.JobModifyIndex ?? 0, warnings: '' };
  }

  #start(jobId: string): void {
    const live = [...this.allocationsById.values()].filter(isLive).length;
    if (live >= this.capacity) {
      const failure = {
        nodesEvaluated: 1,
        nodesExhausted: 1,
        nodesFiltered: 0,
        exhaustedDimensions: { memory: 1 },
        filteredConstraints: {},
      };
      this.evaluate(jobId, { failedGroups: { 'default-group': failure }, blockedEvaluation: randomUUID() });
      return;
    }
    const { id } = this.place(jobId);
    this.evaluate(jobId);
    this.run(id);
  }

  #listJobs({ prefix = '', filter }: JobListOptions): JobRow[] {
    if (filter !== undefined && filter !== USED_RUNNERS) throw unusable(filter);
    return [...this.jobDocuments.values()]
      .filter((job) => job.ID.startsWith(prefix))
      .filter((job) => filter === undefined || this.metaOf(job.ID).used === 'true')
      .map((job) => ({
        id: job.ID,
        status: job.Status ?? 'pending',
        stop: job.Stop ?? false,
        createIndex: job.CreateIndex ?? 0,
        modifyIndex: job.ModifyIndex ?? 0,
        jobModifyIndex: job.JobModifyIndex ?? 0,
        meta: job.Meta ?? {},
      }));
  }

  #listAllocations({ filter }: AllocationListOptions): Allocation[] {
    if (filter !== undefined && filter !== LIVING_ALLOCATIONS) throw unusable(filter);
    const living = ['pending', 'running', 'unknown'];
    return [...this.allocationsById.values()].filter(
      (allocation) => filter === undefined || living.includes(allocation.clientStatus),
    );
  }

  #put(allocation: Allocation): Allocation {
    this.allocationsById.set(allocation.id, allocation);
    this.tell({ topic: 'allocation', index: allocation.modifyIndex, allocation });
    return allocation;
  }

  #portsOf(jobId: string): Allocation['ports'] {
    const networks = (this.jobDocuments.get(jobId)?.TaskGroups ?? []).flatMap(
      (group) => group.Networks ?? [],
    );
    return networks
      .flatMap((network) => network.DynamicPorts ?? [])
      .map(({ Label, To = 0 }, position) => ({
        label: Label,
        exposedPort: To,
        hostIp: '127.0.0.1',
        hostPort: 20_000 + position,
      }));
  }
}

interface TaskChange {
  readonly restarts?: number;
  readonly lastRestart?: string;
  readonly oomKilled?: boolean;
}

/** The state of a runner's task. */
export function task(
  state: TaskState['state'],
  { restarts = 0, lastRestart, oomKilled = false }: TaskChange = {},
): TaskState {
  const end = { type: 'Terminated', message: 'Exit Code: 137', exitCode: 137, oomKilled };
  return {
    state,
    failed: false,
    restarts,
    startedAt: `start ${restarts}`,
    lastRestart,
    events:
      restarts > 0 ? [end, { type: 'Restarting', message: '', exitCode: undefined, oomKilled: false }] : [],
  };
}

function isLive(allocation: Allocation): boolean {
  return (
    allocation.desiredStatus === 'run' && ['pending', 'running', 'unknown'].includes(allocation.clientStatus)
  );
}

function unusable(filter: string): ServiceError {
  return new ServiceError('NOMAD_REJECTED', `the filter cannot be used: ${filter}`);
}

/** One reader of the event stream. */
class Stream implements AsyncIterableIterator<readonly NomadEvent[]> {
  readonly #queue: (readonly NomadEvent[])[] = [];
  readonly #onEnd: () => void;
  #failure: unknown;
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(signal: AbortSignal, onEnd: () => void) {
    this.#onEnd = onEnd;
    const close = (): void => {
      this.#ended = true;
      onEnd();
      this.#wake();
    };
    if (signal.aborted) close();
    else signal.addEventListener('abort', close, { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(batch: readonly NomadEvent[]): void {
    this.#queue.push(batch);
    this.#wake();
  }

  fail(error: unknown): void {
    this.#failure = error;
    this.#onEnd();
    this.#wake();
  }

  async next(): Promise<IteratorResult<readonly NomadEvent[]>> {
    for (;;) {
      const batch = this.#queue.shift();
      if (batch) return { done: false, value: batch };
      if (this.#ended) return { done: true, value: undefined };
      if (this.#failure !== undefined)
        throw this.#failure instanceof Error ? this.#failure : new Error('failed');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  return(): Promise<IteratorResult<readonly NomadEvent[]>> {
    this.#ended = true;
    this.#onEnd();
    return Promise.resolve({ done: true, value: undefined });
  }
}
