import type { Allocation, Evaluation, Job, PlacementMetrics } from '../state/records.js';
import type { Store } from '../state/store.js';
import type { Transaction } from '../state/transaction.js';
import { blockedBy, completed } from './evaluations.js';
import type { PlacementDeps } from './placement.js';
import { place } from './placement.js';
import type { Changes, Slot } from './reconcile.js';
import { reconcile } from './reconcile.js';

/**
 * The worker that takes evaluations to their end, one at a time, in the order in which they came:
 *
 *   pending ─▶ (what cannot be placed: a new evaluation, blocked) ─▶ (what changes: one plan) ─▶ complete
 *
 * Each arrow is one change of the store, with a turn of the event loop between, so that whoever looks sees the states
 * that a real server shows. A blocked evaluation is taken up again when room appears and canceled when its job is
 * evaluated without a failure.
 */
export interface SchedulerDeps extends PlacementDeps {
  readonly store: Store;
  /** Told of every allocation that a plan made or changed. */
  readonly onPlanned: (allocations: readonly Allocation[]) => void;
}

interface Plan {
  readonly changes: Changes;
  readonly placed: readonly { readonly slot: Slot; readonly ports: Allocation['Ports'] }[];
  readonly failed: ReadonlyMap<string, { readonly metrics: PlacementMetrics; readonly count: number }>;
}

export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #queue: string[] = [];
  readonly #blocked = new Set<string>();
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  /** Takes up an evaluation that is stored. */
  enqueue(evaluationId: string): void {
    if (this.#stopped) return;
    this.#queue.push(evaluationId);
    this.#working ??= this.#work();
  }

  /** Resolves when no evaluation waits. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue.length = 0;
    await this.#working;
  }

  /** Room may have appeared: takes up every blocked evaluation that fits now. */
  retryBlocked(): void {
    const { store } = this.#deps;
    for (const id of this.#blocked) {
      const evaluation = store.evaluation(id);
      if (evaluation?.Status !== 'blocked') {
        this.#blocked.delete(id);
        continue;
      }
      const job = store.job(evaluation.Namespace, evaluation.JobID);
      const plan = this.#plan(job, evaluation);
      if (plan.placed.length === 0 && plan.failed.size > 0) continue;
      this.#blocked.delete(id);
      this.enqueue(id);
    }
  }

  async #work(): Promise<void> {
    for (;;) {
      await nextTurn();
      const id = this.#queue.shift();
      if (id === undefined) break;
      const evaluation = this.#deps.store.evaluation(id);
      if (evaluation) await this.#process(evaluation);
    }
    this.#working = undefined;
  }

  async #process(evaluation: Evaluation): Promise<void> {
    const { store, onPlanned } = this.#deps;
    const snapshotIndex = store.index;
    const job = store.job(evaluation.Namespace, evaluation.JobID);
    const plan = this.#plan(job, evaluation);
    const isRetry = evaluation.Status === 'blocked';
    const failures = plan.failed.size > 0 ? metricsOf(plan) : undefined;

    let blockedId: string | undefined;
    if (failures && !isRetry)
      blockedId = this.#block(evaluation, failures, queuedOf(plan, job), snapshotIndex);

    const { stops, inPlace } = plan.changes;
    let current = evaluation;
    if (stops.length + inPlace.length + plan.placed.length > 0) {
      const result = store.apply('PlanResult', (tx) => ({
        evaluation: tx.putEvaluation(evaluation),
        allocations: this.#applyPlan(tx, plan, evaluation, job),
      }));
      current = result.evaluation;
      onPlanned(result.allocations);
    }
    await nextTurn();
    if (failures && isRetry) {
      this.#blocked.add(current.ID);
      store.apply('EvaluationUpdated', (tx) => tx.putEvaluation({ ...current, FailedTGAllocs: failures }));
      return;
    }
    store.apply('EvaluationUpdated', (tx) => {
      if (!failures) this.#cancelBlocked(tx, current);
      const result = {
        SnapshotIndex: snapshotIndex,
        ...(job ? { QueuedAllocations: queuedOf(plan, job) } : {}),
        ...(failures && blockedId !== undefined ? { FailedTGAllocs: failures, BlockedEval: blockedId } : {}),
      };
      tx.putEvaluation(completed(current, result));
      tx.refreshJobStatus(current.Namespace, current.JobID);
    });
  }

  #plan(job: Job | undefined, evaluation: Evaluation): Plan {
    const { store } = this.#deps;
    const allocations = store.allocationsOf(evaluation.Namespace, evaluation.JobID);
    const changes = reconcile(job, allocations, store.now().ns);
    const placed: { slot: Slot; ports: Allocation['Ports'] }[] = [];
    const failed = new Map<string, { metrics: PlacementMetrics; count: number }>();
    if (!job) return { changes, placed, failed };
    const usage = store.usage.without(changes.stops.map((stop) => stop.allocation));
    for (const slot of changes.places) {
      const result = place(slot.group, job, store.node, usage, this.#deps);
      if (result.placed) {
        placed.push({ slot, ports: result.ports });
        usage.take(slot.group, result.ports);
      } else {
        const count = failed.get(slot.group.Name)?.count ?? 0;
        failed.set(slot.group.Name, { metrics: result.metrics, count: count + 1 });
      }
    }
    return { changes, placed, failed };
  }

  #applyPlan(tx: Transaction, plan: Plan, evaluation: Evaluation, job: Job | undefined): Allocation[] {
    const { store, randomness } = this.#deps;
    const changed: Allocation[] = [];
    const next = new Map<string, string>();
    if (job) {
      for (const { slot, ports } of plan.placed) {
        const allocation = newAllocation(randomness.uuid(), evaluation, job, slot, ports, store, tx.time.ns);
        if (slot.previous) next.set(slot.previous.ID, allocation.ID);
        changed.push(tx.putPlannedAllocation(allocation));
      }
      for (const allocation of plan.changes.inPlace) {
        changed.push(tx.putPlannedAllocation({ ...allocation, Job: job }));
      }
    }
    for (const { allocation, description } of plan.changes.stops) {
      const stopped = tx.putPlannedAllocation({
        ...allocation,
        DesiredStatus: 'stop',
        DesiredDescription: description,
        NextAllocation: next.get(allocation.ID) ?? allocation.NextAllocation,
      });
      changed.push(stopped);
    }
    // Nomad writes the link of an allocation to its successor with every plan that touches the successor.
    const ids = new Set(changed.map(({ ID }) => ID));
    for (const { PreviousAllocation } of changed) {
      const previous = ids.has(PreviousAllocation) ? undefined : store.allocation(PreviousAllocation);
      if (previous) tx.touchAllocation(previous);
    }
    tx.refreshJobStatus(evaluation.Namespace, evaluation.JobID);
    return changed;
  }

  #block(
    evaluation: Evaluation,
    failures: Readonly<Record<string, PlacementMetrics>>,
    queued: Readonly<Record<string, number>>,
    snapshotIndex: number,
  ): string {
    const { store, randomness } = this.#deps;
    const older = store
      .evaluationsOf(evaluation.Namespace, evaluation.JobID)
      .filter(({ Status }) => Status === 'blocked');
    const wanted = blockedBy(randomness, evaluation, {
      FailedTGAllocs: failures,
      QueuedAllocations: queued,
      SnapshotIndex: snapshotIndex,
    });
    const blocked = store.apply('EvaluationUpdated', (tx) => {
      for (const one of older) {
        this.#cancel(tx, one, `existing blocked evaluation exists for job ${JSON.stringify(one.JobID)}`);
      }
      return tx.putEvaluation(wanted);
    });
    this.#blocked.add(blocked.ID);
    return blocked.ID;
  }

  #cancelBlocked(tx: Transaction, successful: Evaluation): void {
    for (const evaluation of this.#deps.store.evaluationsOf(successful.Namespace, successful.JobID)) {
      if (evaluation.Status !== 'blocked' || evaluation.ID === successful.ID) continue;
      this.#cancel(tx, evaluation, `evaluation ${JSON.stringify(successful.ID)} successful`);
    }
  }

  #cancel(tx: Transaction, evaluation: Evaluation, description: string): void {
    this.#blocked.delete(evaluation.ID);
    tx.putEvaluation({ ...evaluation, Status: 'canceled', StatusDescription: description });
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function metricsOf(plan: Plan): Record<string, PlacementMetrics> {
  return Object.fromEntries(
    [...plan.failed].map(([name, { metrics, count }]) => [
      name,
      { ...metrics, CoalescedFailures: count - 1 },
    ]),
  );
}

/** Allocations that wait for room, by group; a group that never had any is left out. */
function queuedOf(plan: Plan, job: Job | undefined): Record<string, number> {
  const groups = job?.TaskGroups.filter(
    ({ Count }) => Count > 0 || (job.Version > 0 && plan.placed.length === 0),
  );
  return Object.fromEntries((groups ?? []).map(({ Name }) => [Name, plan.failed.get(Name)?.count ?? 0]));
}

function newAllocation(
  id: string,
  evaluation: Evaluation,
  job: Job,
  { group, name, previous }: Slot,
  ports: Allocation['Ports'],
  store: Store,
  nowNs: number,
): Allocation {
  const isReplacementOfFailed = previous?.ClientStatus === 'failed';
  return {
    ID: id,
    Namespace: job.Namespace,
    Name: name,
    EvalID: evaluation.ID,
    NodeID: store.node.ID,
    NodeName: store.node.Name,
    JobID: job.ID,
    Job: job,
    TaskGroup: group.Name,
    Ports: ports,
    DesiredStatus: 'run',
    DesiredDescription: '',
    Migrate: false,
    ClientStatus: 'pending',
    ClientDescription: '',
    TaskStates: undefined,
    PreviousAllocation: previous?.ID ?? '',
    NextAllocation: '',
    RescheduleTimes: isReplacementOfFailed ? [...previous.RescheduleTimes, nowNs] : [],
    CreateIndex: 0,
    ModifyIndex: 0,
    AllocModifyIndex: 0,
    CreateTime: 0,
    ModifyTime: 0,
  };
}
