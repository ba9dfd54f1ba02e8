import type { Clock, Timer } from '../../base/clock.js';
import { newEvaluation } from '../scheduler/evaluations.js';
import type { Allocation, Evaluation } from '../state/records.js';
import { hasEnded } from '../state/records.js';
import type { Store } from '../state/store.js';
import type { AllocationRunnerDeps } from './allocation-runner.js';
import { AllocationRunner, clientStatus } from './allocation-runner.js';

/**
 * The node: runs what the plans put on it and reports how that goes.
 *
 * Reports are gathered for a moment and stored as one change, as a real client sends them: what matters to others
 * (running, dead) after a few milliseconds, the rest when the next report goes or after a while.
 */
export interface NodeClientDeps extends Omit<AllocationRunnerDeps, 'onChange'> {
  readonly store: Store;
  /** Told after every report, with the allocations in it and the evaluations that it made necessary. */
  readonly onReported: (allocations: readonly Allocation[], evaluations: readonly Evaluation[]) => void;
}

const URGENT_MS = 2;
const LAZY_MS = 200;

export class NodeClient {
  readonly #deps: NodeClientDeps;
  readonly #runners = new Map<string, AllocationRunner>();
  readonly #dirty = new Set<string>();
  readonly #cleanups = new Set<Promise<void>>();
  #timer: { readonly handle: Timer; readonly dueMs: number } | undefined;
  #stopped = false;

  constructor(deps: NodeClientDeps) {
    this.#deps = deps;
  }

  /** Starts and stops what a plan made or changed. */
  apply(allocations: readonly Allocation[]): void {
    for (const allocation of allocations) {
      const runner = this.#runners.get(allocation.ID);
      if (allocation.DesiredStatus === 'stop') runner?.stop();
      else if (!runner && !hasEnded(allocation)) this.#start(allocation);
    }
  }

  runner(allocationId: string): AllocationRunner | undefined {
    return this.#runners.get(allocationId);
  }

  /** Ids of the allocations that run here. */
  get running(): string[] {
    return [...this.#runners.keys()];
  }

  /** Ends every task and reports nothing more. Resolves when all are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.handle.cancel();
    const runners = [...this.#runners.values()];
    for (const runner of runners) runner.stop();
    await Promise.all(runners.map((runner) => runner.ended));
    await Promise.all(this.#cleanups);
  }

  #start(allocation: Allocation): void {
    if (this.#stopped) return;
    const previous = this.#runners.get(allocation.PreviousAllocation)?.ended ?? Promise.resolve();
    const deps = { ...this.#deps, onChange: (id: string, urgent: boolean) => this.#report(id, urgent) };
    const runner = new AllocationRunner(deps, allocation, previous);
    this.#runners.set(allocation.ID, runner);
    // The folder of an allocation that has ended is of no use to anybody.
    const cleanup = runner.ended.then(() => deps.folders.remove(runner.folder));
    this.#cleanups.add(cleanup);
    void cleanup.finally(() => this.#cleanups.delete(cleanup));
  }

  #report(allocationId: string, urgent: boolean): void {
    if (this.#stopped) return;
    this.#dirty.add(allocationId);
    const { clock } = this.#deps;
    const delayMs = urgent ? URGENT_MS : LAZY_MS;
    const dueMs = clock.monotonicMs() + delayMs;
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.handle.cancel();
    this.#timer = { dueMs, handle: this.#arm(clock, delayMs) };
  }

  #arm(clock: Clock, delayMs: number): Timer {
    return clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    const { store, randomness, onReported } = this.#deps;
    const known = [...this.#dirty].filter((id) => store.allocation(id) !== undefined);
    this.#dirty.clear();
    if (known.length === 0) return;
    const reported = store.apply('AllocationUpdated', (tx) => {
      const changed: Allocation[] = [];
      for (const id of known) {
        const allocation = store.allocation(id);
        const runner = this.#runners.get(id);
        if (!allocation || !runner) continue;
        const TaskStates = runner.taskStates;
        const { status, description } = clientStatus(TaskStates);
        changed.push(
          tx.putClientAllocation({
            ...allocation,
            TaskStates,
            ClientStatus: status,
            ClientDescription: description,
          }),
        );
        tx.refreshJobStatus(allocation.Namespace, allocation.JobID);
      }
      tx.touchNode();
      // Nomad looks once more at a job that was purged, when the last of it ends.
      tx.nextLine();
      const orphans = changed.filter((one) => hasEnded(one) && !store.job(one.Namespace, one.JobID));
      const evaluations = orphans.map(({ Namespace, JobID, Job: { Priority, Type } }) =>
        tx.putEvaluation(
          newEvaluation(randomness, { Namespace, JobID, Priority, Type, TriggeredBy: 'job-deregister' }),
        ),
      );
      return { changed, evaluations };
    });
    for (const allocation of reported.changed) {
      if (hasEnded(allocation)) this.#runners.delete(allocation.ID);
    }
    onReported(reported.changed, reported.evaluations);
  }
}
