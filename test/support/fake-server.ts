import { randomUUID } from 'node:crypto';
import { ServiceError } from '../../lib/base/errors.js';
import type { AllocationId } from '../../lib/base/ids.js';
import { allocationId } from '../../lib/base/ids.js';
import type { Allocation, Evaluation, NomadEvent, NomadNode, TaskState } from '../../lib/nomad/model.js';
import type { WireJob } from '../../lib/nomad/wire.js';
import { FakeStream } from './fake-stream.js';

/**
 * A Nomad server in memory: what it holds, and what a test stages in it. It behaves as a real one does by itself (a purged
 * job stops, a change is told), `muted` loses events, `cut` ends the streams, `tell` says anything at all.
 *
 * Not here: what it answers to the service (fake-nomad.ts).
 */
export class FakeServer {
  index = 10;
  /** Events happen, and nobody is told. */
  muted = false;
  /** No event shows a job, so that whoever needs one has to read it. */
  hidesJobs = false;
  /** Every event that was told. */
  readonly said: NomadEvent[] = [];
  readonly jobDocuments = new Map<string, WireJob>();
  readonly allocationsById = new Map<AllocationId, Allocation>();
  readonly nodesById = new Map<string, NomadNode>();
  readonly #streams = new Set<FakeStream>();

  constructor() {
    this.setNode('node-1');
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /** A reader of the events, who hears of nothing before `listen`. */
  stream(signal: AbortSignal): FakeStream {
    const stream: FakeStream = new FakeStream(signal, () => this.#streams.delete(stream));
    return stream;
  }

  /** Tells the reader of all events from now on. */
  listen(stream: FakeStream): void {
    this.#streams.add(stream);
  }

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
    if (!this.hidesJobs) this.tell({ topic: 'job', index: this.index, job: structuredClone(stored) });
    return stored;
  }

  /** Purges a job, by whomever; tells what a real server tells. */
  purgeJob(id: string): string | undefined {
    if (!this.jobDocuments.delete(id)) return undefined;
    const evaluation = this.evaluate(id, { status: 'pending', triggeredBy: 'job-deregister' });
    this.stopAllocations(id);
    return evaluation.id;
  }

  /** What runs of a job ends. */
  stopAllocations(jobId: string): void {
    for (const allocation of [...this.allocationsById.values()]) {
      if (allocation.jobId !== jobId || !isLive(allocation)) continue;
      this.update(allocation.id, { desiredStatus: 'stop' });
      this.update(allocation.id, { clientStatus: 'complete' });
    }
  }

  /** Ids of the jobs of an environment's runners, oldest first. */
  runnerJobs(environmentId: number): string[] {
    return [...this.jobDocuments.keys()].filter((id) => id.startsWith(`${environmentId}-`));
  }

  metaOf(jobId: string): Record<string, string> {
    const groups = this.jobDocuments.get(jobId)?.TaskGroups ?? [];
    return groups.find((group) => group.Name === 'config')?.Meta ?? {};
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

/** Wanted, and not ended. */
export function isLive(allocation: Allocation): boolean {
  return (
    allocation.desiredStatus === 'run' && ['pending', 'running', 'unknown'].includes(allocation.clientStatus)
  );
}
