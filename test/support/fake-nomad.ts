import { randomUUID } from 'node:crypto';
import { ServiceError } from '../../lib/base/errors.js';
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
import type { Allocation, JobRow, Registration } from '../../lib/nomad/model.js';
import type { WireJob } from '../../lib/nomad/wire.js';
import { FakeServer, isLive } from './fake-server.js';
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
 * Nomad in memory, behind the interface of the client: without HTTP.
 *
 * It answers as a real server does by itself (a registered job is placed and runs, a claim is announced again in place),
 * and a test stages the rest: `before` holds calls back or makes them fail, `after` loses the answer of a call that got
 * through, and the server behind it does what it is told (fake-server.ts).
 */
export class FakeNomad extends FakeServer implements Nomad {
  /** Allocations that there is room for. */
  capacity = Infinity;
  /** Whether registered jobs are placed and start by themselves. */
  autoStart = true;
  before: Hook = () => undefined;
  after: Hook = () => undefined;
  readonly calls: Call[] = [];

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
    list: () => Promise.resolve([]),
    get: () => Promise.resolve(undefined),
    put: () => Promise.reject(new ServiceError('NOMAD_REJECTED', 'the fake keeps no variables')),
    remove: () => Promise.resolve(),
  };

  readonly events: NomadEvents = {
    subscribe: ({ signal }): EventSubscription => {
      const stream = this.stream(signal);
      const opened = this.#call('subscribe', '', () => {
        if (!signal.aborted) this.listen(stream);
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
    if (isEnded(stored)) this.stopAllocations(job.ID);
    const isAlive = [...this.allocationsById.values()].some((a) => a.jobId === job.ID && isLive(a));
    if (isAlive) this.update(this.allocationOf(job.ID).id, {});
    else if (this.autoStart && !isEnded(stored)) this.#start(job.ID);
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
}

/** Nothing of it is to run. */
function isEnded(job: WireJob): boolean {
  return job.TaskGroups?.find(({ Name }) => Name === 'default-group')?.Count === 0;
}

function unusable(filter: string): ServiceError {
  return new ServiceError('NOMAD_REJECTED', `the filter cannot be used: ${filter}`);
}
