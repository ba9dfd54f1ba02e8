import type { Moment, Timestamps } from '../time.js';
import { EventBuffer } from './events.js';
import { jobStatus } from './job-status.js';
import type { Allocation, Evaluation, Job, Node, Variable } from './records.js';
import { isTerminal } from './records.js';
import { Transaction } from './transaction.js';
import { NodeUsage } from './usage.js';

/**
 * The agent's state store: tables of records under one index, as Nomad's raft log gives them.
 *
 * Every change goes through `apply`, which takes the next index, runs to its end without a pause and then announces its
 * lines to the event buffer. What ended long ago is forgotten, so that an agent can run for days.
 */
export type Table = 'jobs' | 'job_summary' | 'evals' | 'allocs' | 'nodes' | 'variables';

/** Ended evaluations and allocations that are kept. */
const RETAINED = 2000;

export class Store {
  readonly events = new EventBuffer();
  readonly usage = new NodeUsage();
  readonly #timestamps: Timestamps;
  readonly #jobs = new Map<string, Job>();
  /** Keys of all jobs in order; undefined until the next list where a job came or went. */
  #jobOrder: readonly string[] | undefined;
  readonly #allocations = new Map<string, Allocation>();
  readonly #allocationsOfJob = new Map<string, Set<string>>();
  readonly #evaluations = new Map<string, Evaluation>();
  readonly #evaluationsOfJob = new Map<string, Set<string>>();
  readonly #variables = new Map<string, Variable>();
  readonly #endedEvaluations: string[] = [];
  readonly #endedAllocations: string[] = [];
  readonly #indexes = new Map<Table, number>();
  #node: Node | undefined;
  #index = 0;

  constructor(timestamps: Timestamps) {
    this.#timestamps = timestamps;
  }

  /** The index of the last change. */
  get index(): number {
    return this.#index;
  }

  /** The index of the last change of any of these tables. */
  indexOf(...tables: Table[]): number {
    return Math.max(...tables.map((table) => this.#indexes.get(table) ?? 0));
  }

  now(): Moment {
    return this.#timestamps.now();
  }

  /** Makes one change. `lineType` is the event type of what `change` puts; see Transaction. */
  apply<T>(lineType: string, change: (tx: Transaction) => T): T {
    this.#index += 1;
    const tx = new Transaction(this, this.#index, this.now(), lineType);
    const result = change(tx);
    for (const line of tx.lines) {
      if (line.length > 0) this.events.append({ index: this.#index, events: line });
    }
    this.#forget();
    return result;
  }

  job(namespace: string, id: string): Job | undefined {
    return this.#jobs.get(jobKey(namespace, id));
  }

  /** All jobs in the order in which Nomad lists them, which is kept from one page of a list to the next. */
  jobs(): Job[] {
    this.#jobOrder ??= [...this.#jobs].sort(([, a], [, b]) => compareJobs(a, b)).map(([key]) => key);
    return this.#jobOrder.flatMap((key) => this.#jobs.get(key) ?? []);
  }

  allocation(id: string): Allocation | undefined {
    return this.#allocations.get(id);
  }

  allocations(): IterableIterator<Allocation> {
    return this.#allocations.values();
  }

  allocationsOf(namespace: string, jobId: string): Allocation[] {
    return pick(this.#allocations, this.#allocationsOfJob.get(jobKey(namespace, jobId)));
  }

  evaluation(id: string): Evaluation | undefined {
    return this.#evaluations.get(id);
  }

  evaluationsOf(namespace: string, jobId: string): Evaluation[] {
    return pick(this.#evaluations, this.#evaluationsOfJob.get(jobKey(namespace, jobId)));
  }

  get node(): Node {
    if (!this.#node) throw new Error('the node is registered before anything else happens');
    return this.#node;
  }

  variable(namespace: string, path: string): Variable | undefined {
    return this.#variables.get(jobKey(namespace, path));
  }

  variables(): IterableIterator<Variable> {
    return this.#variables.values();
  }

  /** What the job's status is now, by Nomad's rule. */
  statusOf(job: Job): Job['Status'] {
    return jobStatus(this.allocationsOf(job.Namespace, job.ID), this.evaluationsOf(job.Namespace, job.ID));
  }

  // The following are for Transaction alone.

  putJob(job: Job): void {
    const key = jobKey(job.Namespace, job.ID);
    if (!this.#jobs.has(key)) this.#jobOrder = undefined;
    this.#jobs.set(key, job);
    this.#touch('jobs');
  }

  deleteJob(job: Job): void {
    this.#jobs.delete(jobKey(job.Namespace, job.ID));
    this.#jobOrder = undefined;
    this.#touch('jobs');
  }

  putAllocation(allocation: Allocation): void {
    const before = this.#allocations.get(allocation.ID);
    this.#allocations.set(allocation.ID, allocation);
    this.usage.change(before, allocation);
    addTo(this.#allocationsOfJob, jobKey(allocation.Namespace, allocation.JobID), allocation.ID);
    if (isTerminal(allocation) && !(before && isTerminal(before))) this.#endedAllocations.push(allocation.ID);
    this.#touch('allocs', 'job_summary');
  }

  putEvaluation(evaluation: Evaluation): void {
    this.#evaluations.set(evaluation.ID, evaluation);
    addTo(this.#evaluationsOfJob, jobKey(evaluation.Namespace, evaluation.JobID), evaluation.ID);
    if (evaluation.Status === 'complete' || evaluation.Status === 'canceled') {
      this.#endedEvaluations.push(evaluation.ID);
    }
    this.#touch('evals');
  }

  putNode(node: Node): void {
    this.#node = node;
    this.#touch('nodes');
  }

  putVariable(variable: Variable): void {
    this.#variables.set(jobKey(variable.Namespace, variable.Path), variable);
    this.#touch('variables');
  }

  deleteVariable(variable: Variable): void {
    this.#variables.delete(jobKey(variable.Namespace, variable.Path));
    this.#touch('variables');
  }

  #touch(...tables: Table[]): void {
    for (const table of tables) this.#indexes.set(table, this.#index);
  }

  #forget(): void {
    while (this.#endedEvaluations.length > RETAINED) {
      const evaluation = this.#evaluations.get(this.#endedEvaluations.shift() ?? '');
      if (!evaluation) continue;
      this.#evaluations.delete(evaluation.ID);
      removeFrom(this.#evaluationsOfJob, jobKey(evaluation.Namespace, evaluation.JobID), evaluation.ID);
    }
    while (this.#endedAllocations.length > RETAINED) {
      const allocation = this.#allocations.get(this.#endedAllocations.shift() ?? '');
      if (!allocation) continue;
      const key = jobKey(allocation.Namespace, allocation.JobID);
      const isLastOfJob = this.#jobs.has(key) && this.#allocationsOfJob.get(key)?.size === 1;
      const stillRuns = allocation.ClientStatus === 'running' || allocation.ClientStatus === 'pending';
      if (isLastOfJob || stillRuns) {
        this.#endedAllocations.push(allocation.ID);
        break;
      }
      this.#allocations.delete(allocation.ID);
      removeFrom(this.#allocationsOfJob, key, allocation.ID);
    }
  }
}

/** What names the place of a job in a list: a page begins with the job of its token. */
export function jobToken({ Namespace, ID }: Pick<Job, 'Namespace' | 'ID'>): string {
  return `${Namespace}.${ID}`;
}

function compareJobs(a: Job, b: Job): number {
  const [left, right] = [jobToken(a), jobToken(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function jobKey(namespace: string, id: string): string {
  return `${namespace}\0${id}`;
}

function pick<T>(table: ReadonlyMap<string, T>, ids: ReadonlySet<string> | undefined): T[] {
  const found: T[] = [];
  for (const id of ids ?? []) {
    const record = table.get(id);
    if (record) found.push(record);
  }
  return found;
}

function addTo(sets: Map<string, Set<string>>, key: string, id: string): void {
  const set = sets.get(key);
  if (set) set.add(id);
  else sets.set(key, new Set([id]));
}

function removeFrom(sets: Map<string, Set<string>>, key: string, id: string): void {
  const set = sets.get(key);
  set?.delete(id);
  if (set?.size === 0) sets.delete(key);
}
