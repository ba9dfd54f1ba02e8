import type { Timer } from '../base/clock.js';
import { NodeClient } from './client/node-client.js';
import type { NodeClientDeps } from './client/node-client.js';
import { HttpFailure } from './failure.js';
import { newEvaluation } from './scheduler/evaluations.js';
import { NodeAdmin } from './scheduler/node-admin.js';
import type { PlacementDeps } from './scheduler/placement.js';
import { rescheduleDelay } from './scheduler/reschedule.js';
import { Scheduler } from './scheduler/scheduler.js';
import { canonicalJob, multiError } from './state/canonical-job.js';
import { specChanged } from './state/job-changes.js';
import type { Allocation, Evaluation, Job, Node } from './state/records.js';
import { isTerminal } from './state/records.js';
import { Store } from './state/store.js';
import { msToNs, nsToMs } from './time.js';

/**
 * The whole of one small cluster without its HTTP API: the state, the scheduler and the one node, and what can be asked
 * of them. Refusals are HttpFailures with Nomad's texts.
 */
export interface ClusterOptions
  extends Omit<NodeClientDeps, 'store' | 'onReported'>, Omit<PlacementDeps, 'randomness'> {
  readonly nodeName: string;
  readonly namespaces: readonly string[];
}

export interface RegisterRequest {
  readonly job: unknown;
  readonly namespace: string;
  /** The index that the job must have; undefined for no check, 0 for a job that must not exist. */
  readonly enforceIndex: number | undefined;
}

export interface EvaluationStarted {
  readonly evaluationId: string;
  readonly evaluationIndex: number;
  readonly index: number;
  readonly jobModifyIndex: number;
}

export class Cluster {
  readonly store: Store;
  readonly client: NodeClient;
  readonly node: NodeAdmin;
  readonly #options: ClusterOptions;
  readonly #scheduler: Scheduler;
  readonly #timers = new Set<Timer>();

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.store = new Store(options.timestamps);
    this.client = new NodeClient({
      ...options,
      store: this.store,
      onReported: (allocations, evaluations) => this.#afterReport(allocations, evaluations),
    });
    this.#scheduler = new Scheduler({
      ...options,
      store: this.store,
      onPlanned: (allocations) => this.#afterPlan(allocations),
    });
    this.node = new NodeAdmin({
      store: this.store,
      randomness: options.randomness,
      later: (delayMs, work) => this.#later(delayMs, work),
      enqueue: (evaluation) => this.#scheduler.enqueue(evaluation.ID),
      retryBlocked: () => this.#scheduler.retryBlocked(),
    });
    this.#registerNode();
  }

  get namespaces(): readonly string[] {
    return this.#options.namespaces;
  }

  register({ job: sent, namespace, enforceIndex }: RegisterRequest): EvaluationStarted {
    const { store } = this;
    const wanted = canonicalJob(sent, namespace);
    if (!this.namespaces.includes(namespace)) {
      throw multiError([`job "${wanted.ID}" is in nonexistent namespace "${namespace}"`]);
    }
    const existing = store.job(namespace, wanted.ID);
    if (enforceIndex !== undefined) enforce(enforceIndex, existing);
    const isNew = !existing || specChanged(existing, wanted);
    return store.apply(isNew ? 'JobRegistered' : 'EvaluationUpdated', (tx) => {
      const job = isNew
        ? tx.putJobVersion({
            ...wanted,
            SubmitTime: tx.time.ns,
            CreateIndex: existing?.CreateIndex ?? 0,
            Version: existing ? existing.Version + 1 : 0,
          })
        : existing;
      tx.nextLine();
      const { ID: JobID, Namespace, Type, Priority, JobModifyIndex } = job;
      const evaluation = tx.putEvaluation(
        newEvaluation(this.#options.randomness, {
          Namespace,
          JobID,
          Type,
          Priority,
          JobModifyIndex,
          TriggeredBy: 'job-register',
        }),
      );
      tx.refreshJobStatus(Namespace, JobID);
      return this.#begin(evaluation, JobModifyIndex);
    });
  }

  /** Stops a job, or removes it with `purge`. Undefined where there is none, which is no failure. */
  deregister(namespace: string, id: string, { purge }: { purge: boolean }): EvaluationStarted | undefined {
    const existing = this.store.job(namespace, id);
    if (!existing) return undefined;
    return this.store.apply('JobDeregistered', (tx) => {
      if (purge) tx.deleteJob(existing);
      else tx.putJobVersion({ ...existing, Stop: true, Version: existing.Version + 1 });
      tx.nextLine();
      const evaluation = tx.putEvaluation(
        newEvaluation(this.#options.randomness, {
          Namespace: namespace,
          JobID: id,
          // Nomad makes it so whatever the type of the job was.
          Type: 'service',
          Priority: existing.Priority,
          JobModifyIndex: tx.index,
          TriggeredBy: 'job-deregister',
        }),
      );
      return this.#begin(evaluation, tx.index);
    });
  }

  /** Stops one allocation; its job gets another. */
  stopAllocation(allocation: Allocation): EvaluationStarted {
    return this.store.apply('AllocationUpdateDesiredStatus', (tx) => {
      tx.putPlannedAllocation({ ...allocation, Migrate: true });
      return this.#begin(tx.putEvaluation(this.#evaluationOf(allocation, 'alloc-stop')), 0);
    });
  }

  /** Ends everything. The state stays readable. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await this.#scheduler.stop();
    await this.client.stop();
  }

  /** Runs `work` after a delay unless the cluster is stopped before. */
  #later(delayMs: number, work: () => void): void {
    const timer = this.#options.clock.setTimer(delayMs, () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  #begin(evaluation: Evaluation, jobModifyIndex: number): EvaluationStarted {
    this.#scheduler.enqueue(evaluation.ID);
    return {
      evaluationId: evaluation.ID,
      evaluationIndex: evaluation.CreateIndex,
      index: evaluation.CreateIndex,
      jobModifyIndex,
    };
  }

  #evaluationOf({ Namespace, JobID, Job }: Allocation, TriggeredBy: string): Evaluation {
    const { Type, Priority, JobModifyIndex } = this.store.job(Namespace, JobID) ?? Job;
    return newEvaluation(this.#options.randomness, {
      Namespace,
      JobID,
      Type,
      Priority,
      TriggeredBy,
      ...(TriggeredBy === 'alloc-stop' ? { JobModifyIndex } : {}),
    });
  }

  #afterPlan(allocations: readonly Allocation[]): void {
    this.client.apply(allocations);
    if (allocations.some(isTerminal)) this.#scheduler.retryBlocked();
  }

  #afterReport(allocations: readonly Allocation[], evaluations: readonly Evaluation[]): void {
    for (const evaluation of evaluations) this.#scheduler.enqueue(evaluation.ID);
    const { ns } = this.store.now();
    for (const allocation of allocations) {
      const delay = rescheduleDelay(allocation, ns);
      if (delay === undefined || !this.store.job(allocation.Namespace, allocation.JobID)) continue;
      this.#later(nsToMs(delay), () => {
        const evaluation = this.store.apply('EvaluationUpdated', (tx) =>
          tx.putEvaluation(this.#evaluationOf(allocation, 'alloc-failure')),
        );
        this.#scheduler.enqueue(evaluation.ID);
      });
    }
    if (allocations.some(isTerminal)) this.#scheduler.retryBlocked();
  }

  #registerNode(): void {
    const { randomness, nodeName } = this.#options;
    const node: Node = {
      ID: randomness.uuid(),
      Name: nodeName,
      Status: 'ready',
      SchedulingEligibility: 'eligible',
      DrainStrategy: null,
      LastDrain: null,
      LastAllocUpdateIndex: 0,
      StatusUpdatedAt: Math.floor(this.store.now().ns / msToNs(1000)),
      CreateIndex: 0,
      ModifyIndex: 0,
    };
    this.store.apply('NodeRegistration', (tx) => tx.putNode(node));
  }
}

function enforce(index: number, existing: Job | undefined): void {
  const prefix = `Enforcing job modify index ${index}: `;
  if (!existing) {
    if (index !== 0) throw new HttpFailure(500, `${prefix}job does not exist`);
    return;
  }
  if (index === 0) throw new HttpFailure(500, `${prefix}job already exists`);
  if (index !== existing.JobModifyIndex) {
    const { JobModifyIndex } = existing;
    throw new HttpFailure(500, `${prefix}job exists with conflicting job modify index: ${JobModifyIndex}`);
  }
}
