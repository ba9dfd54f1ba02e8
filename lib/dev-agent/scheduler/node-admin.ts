import type { Randomness } from '../../base/ids.js';
import type { Allocation, Evaluation, Node } from '../state/records.js';
import { isTerminal } from '../state/records.js';
import type { Store } from '../state/store.js';
import { nsToMs } from '../time.js';
import { newEvaluation } from './evaluations.js';

/**
 * What an operator does to the node: drain it, end the drain, set its eligibility.
 *
 * A drain makes the node ineligible and moves its allocations away: those of service jobs at once, those of batch jobs
 * when the deadline has passed. There is no other node, so they wait, blocked, until this one is eligible again.
 */
export interface NodeAdminDeps {
  readonly store: Store;
  readonly randomness: Randomness;
  readonly later: (delayMs: number, work: () => void) => void;
  readonly enqueue: (evaluation: Evaluation) => void;
  readonly retryBlocked: () => void;
}

export class NodeAdmin {
  readonly #deps: NodeAdminDeps;

  constructor(deps: NodeAdminDeps) {
    this.#deps = deps;
  }

  /** Begins a drain; `deadlineNs` 0 waits for batch jobs for ever, a negative one does not wait. Returns the index. */
  drain({ deadlineNs, ignoreSystemJobs }: { deadlineNs: number; ignoreSystemJobs: boolean }): number {
    const { store, later } = this.#deps;
    const node = store.apply('NodeDrain', (tx) => {
      const startedAt = tx.time.rfc3339;
      const forceMs = nsToMs(tx.time.ns + Math.max(0, deadlineNs));
      return tx.putNode({
        ...store.node,
        SchedulingEligibility: 'ineligible',
        DrainStrategy: {
          Deadline: deadlineNs,
          ForceDeadline: new Date(forceMs).toISOString(),
          IgnoreSystemJobs: ignoreSystemJobs,
          StartedAt: startedAt,
        },
        LastDrain: {
          AccessorID: '',
          Meta: null,
          StartedAt: startedAt,
          Status: 'draining',
          UpdatedAt: startedAt,
        },
      });
    });
    const isSame = (): boolean => store.node.DrainStrategy === node.DrainStrategy;
    const batch = this.#wanted().filter(({ Job }) => Job.Type === 'batch');
    const others = this.#wanted().filter(({ Job }) => Job.Type !== 'batch');
    setImmediate(() => {
      if (!isSame()) return;
      this.#migrate(others);
      if (batch.length === 0) this.#endDrain('ineligible', 'complete');
    });
    if (batch.length > 0 && deadlineNs !== 0) {
      later(Math.max(0, nsToMs(deadlineNs)), () => {
        if (!isSame()) return;
        this.#migrate(this.#wanted());
        this.#endDrain('ineligible', 'complete');
      });
    }
    return node.ModifyIndex;
  }

  /** Ends a drain before its time. Returns the index. */
  cancelDrain({ markEligible }: { markEligible: boolean }): number {
    const eligibility = markEligible ? 'eligible' : this.#deps.store.node.SchedulingEligibility;
    const node = this.#endDrain(eligibility, 'canceled');
    if (markEligible) this.#becameEligible();
    return node.ModifyIndex;
  }

  setEligibility(eligibility: Node['SchedulingEligibility']): { index: number; evaluations: Evaluation[] } {
    const { store } = this.#deps;
    if (store.node.SchedulingEligibility === eligibility) return { index: store.index, evaluations: [] };
    const node = store.apply('NodeDrain', (tx) =>
      tx.putNode({ ...store.node, SchedulingEligibility: eligibility }),
    );
    const evaluations = eligibility === 'eligible' ? this.#becameEligible() : [];
    return { index: node.ModifyIndex, evaluations };
  }

  #endDrain(eligibility: Node['SchedulingEligibility'], status: string): Node {
    const { store } = this.#deps;
    return store.apply('NodeDrain', (tx) =>
      tx.putNode({
        ...store.node,
        SchedulingEligibility: eligibility,
        DrainStrategy: null,
        LastDrain: { ...store.node.LastDrain, Status: status, UpdatedAt: tx.time.rfc3339 },
      }),
    );
  }

  #wanted(): Allocation[] {
    return [...this.#deps.store.allocations()].filter((allocation) => !isTerminal(allocation));
  }

  /** Asks for allocations to be moved, and for their jobs to be evaluated. */
  #migrate(allocations: readonly Allocation[]): void {
    const { store, enqueue } = this.#deps;
    if (allocations.length === 0) return;
    const evaluations = store.apply('AllocationUpdateDesiredStatus', (tx) => {
      for (const allocation of allocations) tx.putPlannedAllocation({ ...allocation, Migrate: true });
      return this.#perJob(allocations, { TriggeredBy: 'node-drain' }).map((one) => tx.putEvaluation(one));
    });
    for (const evaluation of evaluations) enqueue(evaluation);
  }

  #becameEligible(): Evaluation[] {
    const { store, enqueue, retryBlocked } = this.#deps;
    const allocations = [...store.allocations()].filter(({ Namespace, JobID }) =>
      store.job(Namespace, JobID),
    );
    const { ID: NodeID, ModifyIndex: NodeModifyIndex } = store.node;
    const wanted = this.#perJob(allocations, { TriggeredBy: 'node-update', NodeID, NodeModifyIndex });
    const evaluations =
      wanted.length === 0
        ? []
        : store.apply('EvaluationUpdated', (tx) => wanted.map((one) => tx.putEvaluation(one)));
    retryBlocked();
    for (const evaluation of evaluations) enqueue(evaluation);
    return evaluations;
  }

  #perJob(
    allocations: readonly Allocation[],
    given: Pick<Evaluation, 'TriggeredBy'> & Partial<Pick<Evaluation, 'NodeID' | 'NodeModifyIndex'>>,
  ): Evaluation[] {
    const jobs = new Map(allocations.map(({ Namespace, JobID, Job }) => [`${Namespace}\0${JobID}`, Job]));
    return [...jobs.values()].map(({ Namespace, ID: JobID, Type, Priority }) =>
      newEvaluation(this.#deps.randomness, { Namespace, JobID, Type, Priority, ...given }),
    );
  }
}
