import type { AllocationId, RunnerId } from '../../lib/base/ids.js';
import { allocationId } from '../../lib/base/ids.js';
import type { EnvironmentId } from '../../lib/base/ids.js';
import type { StoredEnvironment } from '../../lib/environments/store.js';
import { createTemplateJob } from '../../lib/environments/template.js';
import type { Environment } from '../../lib/environments/environment.js';
import type { Allocation, NomadNode } from '../../lib/nomad/model.js';
import type { Listing, Observation, RunnerJob } from '../../lib/runners/observation.js';
import type { Use } from '../../lib/runners/state.js';
import { ALONE } from '../../lib/runners/state.js';
import { task } from './fake-server.js';
import { theBaseJob } from './environments.js';

interface Job {
  readonly id: RunnerId;
  readonly environmentId: EnvironmentId;
  readonly spec: string;
  used: Use | undefined;
  writtenAt: number;
  modifyIndex: number;
}

/**
 * What is true in Nomad, for tests that tell the reconciler of it in every order. Each change appends what a server
 * would say to `said`; whether, when and how often that is heard is the test's choice.
 */
export class Truth {
  index = 10;
  readonly jobs = new Map<RunnerId, Job>();
  readonly allocations = new Map<AllocationId, Allocation>();
  readonly said: Observation[] = [];
  /** Runners to which something happened that ends a claim. */
  readonly disturbed = new Set<RunnerId>();
  node: NomadNode = {
    id: 'node-1',
    name: 'node-1',
    address: '',
    status: 'ready',
    eligible: true,
    draining: false,
    modifyIndex: 1,
  };
  template: StoredEnvironment | undefined;

  setTemplate(environment: Environment): StoredEnvironment {
    this.index += 1;
    const job = createTemplateJob(environment, theBaseJob(), 'bridge');
    this.template = {
      environment,
      foreign: false,
      job,
      jobModifyIndex: this.index,
      dead: false,
      deleting: false,
    };
    this.said.push({ kind: 'template-job', stored: this.template });
    return this.template;
  }

  register(id: RunnerId, environmentId: EnvironmentId, spec: string): void {
    this.index += 1;
    this.jobs.set(id, {
      id,
      environmentId,
      spec,
      used: undefined,
      writtenAt: this.index,
      modifyIndex: this.index,
    });
    this.said.push({ kind: 'runner-job', job: this.#rowOf(id) });
    this.place(id);
  }

  place(jobId: RunnerId): Allocation {
    this.index += 1;
    const previous = this.newest(jobId);
    const allocation: Allocation = {
      id: allocationId(`alloc-${this.index}`),
      jobId,
      nodeId: this.node.id,
      clientStatus: 'pending',
      desiredStatus: 'run',
      description: '',
      createIndex: this.index,
      modifyIndex: this.index,
      previousAllocation: previous?.id,
      nextAllocation: undefined,
      tasks: undefined,
      ports: [],
    };
    this.#say(allocation);
    if (previous) this.change(previous.id, { nextAllocation: allocation.id });
    return allocation;
  }

  newest(jobId: RunnerId): Allocation | undefined {
    return [...this.allocations.values()]
      .filter((allocation) => allocation.jobId === jobId)
      .sort((a, b) => b.createIndex - a.createIndex)[0];
  }

  change(id: AllocationId, change: Partial<Allocation>): void {
    const known = this.allocations.get(id);
    if (!known) return;
    const isHarmless = Object.keys(change).length === 0 || change.clientStatus === 'running';
    if (!isHarmless) this.disturbed.add(known.jobId as RunnerId);
    this.index += 1;
    this.#say({ ...known, ...change, modifyIndex: this.index });
  }

  run(id: AllocationId): void {
    const restarts = this.allocations.get(id)?.tasks?.['default-task']?.restarts ?? 0;
    this.change(id, { clientStatus: 'running', tasks: { 'default-task': task('running', { restarts }) } });
  }

  restart(id: AllocationId): void {
    const restarts = (this.allocations.get(id)?.tasks?.['default-task']?.restarts ?? 0) + 1;
    const change = { restarts, lastRestart: `restart ${restarts}` };
    this.change(id, { clientStatus: 'pending', tasks: { 'default-task': task('pending', change) } });
    this.change(id, { clientStatus: 'running', tasks: { 'default-task': task('running', change) } });
  }

  claim(id: RunnerId, timeoutSeconds: number): boolean {
    const job = this.jobs.get(id);
    if (!job || job.used) return false;
    return this.write(id, job.writtenAt, { timeoutSeconds, owner: ALONE.self, ending: undefined });
  }

  /** Changes whose a runner is, unless its job was written to since that index. */
  write(id: RunnerId, index: number, use: Use): boolean {
    const job = this.jobs.get(id);
    if (job?.writtenAt !== index) return false;
    this.index += 1;
    job.used = use;
    job.writtenAt = this.index;
    job.modifyIndex = this.index;
    this.said.push({ kind: 'runner-job', job: this.#rowOf(id) });
    const allocation = this.newest(id);
    if (allocation?.clientStatus === 'running' && allocation.desiredStatus === 'run')
      this.change(allocation.id, {});
    return true;
  }

  purge(id: RunnerId): void {
    if (!this.jobs.delete(id)) return;
    this.disturbed.add(id);
    this.index += 1;
    this.said.push({
      kind: 'evaluation',
      evaluation: {
        id: `eval-${this.index}`,
        jobId: id,
        status: 'pending',
        statusDescription: '',
        triggeredBy: 'job-deregister',
        createIndex: this.index,
        modifyIndex: this.index,
        blockedEvaluation: undefined,
        nextEvaluation: undefined,
        failedGroups: {},
      },
    });
    for (const allocation of [...this.allocations.values()]) {
      if (allocation.jobId === id && isListed(allocation)) {
        this.change(allocation.id, { desiredStatus: 'stop' });
        this.change(allocation.id, { clientStatus: 'complete' });
      }
    }
  }

  setNodeDown(down: boolean): void {
    this.index += 1;
    this.node = { ...this.node, status: down ? 'down' : 'ready', modifyIndex: this.index };
    this.said.push({ kind: 'node', node: this.node });
  }

  /** All that is true now, as a listing that was begun at `startedAt`. */
  listing(startedAt: number): Listing {
    return {
      startedAt,
      index: Math.max(0, ...[...this.jobs.values()].map((job) => job.modifyIndex)),
      templates: { environments: this.template ? [this.template] : [], unreadable: [] },
      runners: [...this.jobs.keys()].map((id) => this.#rowOf(id)),
      allocations: [...this.allocations.values()].filter(isListed),
      nodes: [this.node],
    };
  }

  job(id: RunnerId): RunnerJob | undefined {
    return this.jobs.has(id) ? this.#rowOf(id) : undefined;
  }

  #rowOf(id: RunnerId): RunnerJob {
    const job = this.jobs.get(id);
    if (!job) throw new Error(`there is no job ${id}`);
    const { environmentId, spec, used, writtenAt, modifyIndex } = job;
    const own = [...this.allocations.values()].filter((allocation) => allocation.jobId === id);
    const ended = own.length > 0 && !own.some(isListed);
    return { id, environmentId, spec, used, writtenAt, stopped: false, ended, modifyIndex };
  }

  #say(allocation: Allocation): void {
    this.allocations.set(allocation.id, allocation);
    this.said.push({ kind: 'allocation', allocation });
  }
}

function isListed(allocation: Allocation): boolean {
  return ['pending', 'running', 'unknown'].includes(allocation.clientStatus);
}
