import type { Moment } from '../time.js';
import type { AgentEvent } from './events.js';
import { lazyJson } from './events.js';
import type { Allocation, Evaluation, Job, Node, Variable } from './records.js';
import { renderAllocation, renderNode } from './render.js';
import type { Store } from './store.js';

/**
 * One change of the store, under one index.
 *
 * Every `put` stores a record with the change's index and adds an event to the current line. `nextLine` begins another
 * line of the same index: Nomad announces a registration and its evaluation apart.
 */
export class Transaction {
  readonly index: number;
  readonly time: Moment;
  readonly lines: AgentEvent[][] = [[]];
  readonly #store: Store;
  readonly #type: string;

  constructor(store: Store, index: number, time: Moment, type: string) {
    this.#store = store;
    this.index = index;
    this.time = time;
    this.#type = type;
  }

  nextLine(): void {
    this.lines.push([]);
  }

  /** A job as it was registered or stopped, which moves JobModifyIndex. */
  putJobVersion(job: Job): Job {
    const stored: Job = {
      ...job,
      CreateIndex: job.CreateIndex === 0 ? this.index : job.CreateIndex,
      ModifyIndex: this.index,
      JobModifyIndex: this.index,
    };
    const isNew = this.#store.job(job.Namespace, job.ID) === undefined;
    const withStatus: Job = { ...stored, Status: isNew ? 'pending' : this.#store.statusOf(stored) };
    this.#putJob(withStatus);
    return withStatus;
  }

  /** Removes the job; Nomad 1.6 announces nothing. */
  deleteJob(job: Job): void {
    this.#store.deleteJob(job);
  }

  /** Gives the job the status that follows from its allocations and evaluations, if that changed. */
  refreshJobStatus(namespace: string, id: string): void {
    const job = this.#store.job(namespace, id);
    if (!job) return;
    const status = this.#store.statusOf(job);
    if (status !== job.Status) this.#putJob({ ...job, Status: status, ModifyIndex: this.index });
  }

  putEvaluation(evaluation: Evaluation): Evaluation {
    const isNew = evaluation.CreateIndex === 0;
    const stored: Evaluation = {
      ...evaluation,
      CreateIndex: isNew ? this.index : evaluation.CreateIndex,
      CreateTime: isNew ? this.time.ns : evaluation.CreateTime,
      ModifyIndex: this.index,
      ModifyTime: this.time.ns,
    };
    this.#store.putEvaluation(stored);
    this.#add('Evaluation', stored.ID, stored.Namespace, [stored.JobID, ''], () => ({ Evaluation: stored }));
    return stored;
  }

  /** A change that the server made, which moves AllocModifyIndex too. */
  putPlannedAllocation(allocation: Allocation): Allocation {
    const isNew = allocation.CreateIndex === 0;
    return this.#putAllocation({
      ...allocation,
      CreateIndex: isNew ? this.index : allocation.CreateIndex,
      CreateTime: isNew ? this.time.ns : allocation.CreateTime,
      AllocModifyIndex: this.index,
      ModifyTime: this.time.ns,
    });
  }

  /** A change that the client reported. */
  putClientAllocation(allocation: Allocation): Allocation {
    return this.#putAllocation({ ...allocation, ModifyTime: this.time.ns });
  }

  /** A change of nothing but the link to another allocation. */
  touchAllocation(allocation: Allocation): Allocation {
    return this.#putAllocation(allocation);
  }

  putNode(node: Node): Node {
    const stored: Node = {
      ...node,
      CreateIndex: node.CreateIndex === 0 ? this.index : node.CreateIndex,
      ModifyIndex: this.index,
    };
    this.#announceNode(stored);
    return stored;
  }

  /** Announces that allocations of the node changed, which is no change of the node itself. */
  touchNode(): void {
    this.#announceNode({ ...this.#store.node, LastAllocUpdateIndex: this.index });
  }

  putVariable(variable: Omit<Variable, 'ModifyIndex' | 'ModifyTime'>): Variable {
    const isNew = variable.CreateIndex === 0;
    const stored: Variable = {
      ...variable,
      CreateIndex: isNew ? this.index : variable.CreateIndex,
      CreateTime: isNew ? this.time.ns : variable.CreateTime,
      ModifyIndex: this.index,
      ModifyTime: this.time.ns,
    };
    this.#store.putVariable(stored);
    return stored;
  }

  deleteVariable(variable: Variable): void {
    this.#store.deleteVariable(variable);
  }

  #putJob(job: Job): void {
    this.#store.putJob(job);
    this.#add('Job', job.ID, job.Namespace, null, () => ({ Job: job }));
  }

  #putAllocation(allocation: Allocation): Allocation {
    const stored: Allocation = { ...allocation, ModifyIndex: this.index };
    this.#store.putAllocation(stored);
    this.#add('Allocation', stored.ID, stored.Namespace, [stored.JobID, ''], () => ({
      Allocation: renderAllocation(stored),
    }));
    return stored;
  }

  #announceNode(node: Node): void {
    this.#store.putNode(node);
    this.#add('Node', node.ID, '', null, () => ({ Node: renderNode(node) }));
  }

  #add(
    topic: AgentEvent['topic'],
    key: string,
    namespace: string,
    filterKeys: readonly string[] | null,
    payload: () => unknown,
  ): void {
    const { index } = this;
    const type = this.#type;
    const json = lazyJson(() => ({
      Topic: topic,
      Type: type,
      Key: key,
      Namespace: namespace,
      FilterKeys: filterKeys,
      Index: index,
      Payload: payload(),
    }));
    this.lines.at(-1)?.push({ topic, type, key, namespace, filterKeys, json });
  }
}
