import type { Randomness } from '../../base/ids.js';
import type { Evaluation } from '../state/records.js';

type Given = Pick<Evaluation, 'Namespace' | 'JobID' | 'Type' | 'Priority' | 'TriggeredBy'> &
  Partial<Pick<Evaluation, 'JobModifyIndex' | 'NodeID' | 'NodeModifyIndex'>>;

/** A pending evaluation that is not stored yet. */
export function newEvaluation(randomness: Randomness, given: Given): Evaluation {
  return {
    ...given,
    ID: randomness.uuid(),
    Status: 'pending',
    CreateIndex: 0,
    ModifyIndex: 0,
    CreateTime: 0,
    ModifyTime: 0,
  };
}

type Result = Partial<
  Pick<Evaluation, 'SnapshotIndex' | 'QueuedAllocations' | 'FailedTGAllocs' | 'BlockedEval'>
>;

/** The evaluation at its end. What it said while it was blocked is gone. */
export function completed(evaluation: Evaluation, result: Result): Evaluation {
  const { PreviousEval, NodeID, NodeModifyIndex } = evaluation;
  return {
    ...identity(evaluation),
    ...(NodeID === undefined ? {} : { NodeID }),
    ...(NodeModifyIndex === undefined ? {} : { NodeModifyIndex }),
    ...(PreviousEval === undefined ? {} : { PreviousEval }),
    ...result,
    Status: 'complete',
  };
}

/** The evaluation that waits for the room that `evaluation` did not find. */
export function blockedBy(randomness: Randomness, evaluation: Evaluation, result: Result): Evaluation {
  return {
    ...identity(evaluation),
    ...result,
    ID: randomness.uuid(),
    CreateIndex: 0,
    PreviousEval: evaluation.ID,
    Status: 'blocked',
    StatusDescription: 'created to place remaining allocations',
    TriggeredBy: 'queued-allocs',
  };
}

function identity(evaluation: Evaluation): Evaluation {
  const { ID, Namespace, JobID, Type, Priority, Status, TriggeredBy, JobModifyIndex } = evaluation;
  const { CreateIndex, ModifyIndex, CreateTime, ModifyTime } = evaluation;
  return {
    ID,
    Namespace,
    JobID,
    Type,
    Priority,
    Status,
    TriggeredBy,
    ...(JobModifyIndex === undefined ? {} : { JobModifyIndex }),
    CreateIndex,
    ModifyIndex,
    CreateTime,
    ModifyTime,
  };
}
