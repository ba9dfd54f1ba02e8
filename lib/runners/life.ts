/**
 * What happens to one runner: how its phase follows its allocations, and when it is lost.
 *
 * How it leaves is leave.ts. Every function takes the draft of the current observation and changes it; none keeps anything.
 */
import type { RunnerId } from '../base/ids.js';
import type { Allocation } from '../nomad/model.js';
import { currentOf, goneReason, isFit, mayRecover, mergeAllocation } from './allocation-record.js';
import type { AllocationRecord, IsNodeDown } from './allocation-record.js';
import type { Draft } from './draft.js';
import { poolFailed, poolStarted } from './pool-health.js';
import { remove } from './leave.js';
import type { GoneReason } from './runner.js';
import type { Runner } from './state.js';
import { NOT_READ } from './state.js';

/** A new member that waits for its allocation. `seen` is undefined while Nomad has not confirmed the job. */
export function addStarting(
  draft: Draft,
  runner: Pick<Runner, 'id' | 'environmentId' | 'spec' | 'seen'>,
): Runner {
  const added: Runner = {
    ...runner,
    phase: { name: 'starting', since: draft.context.now, blocked: undefined },
    generation: 0,
    written: NOT_READ,
    allocations: [],
  };
  draft.setRunner(added);
  draft.wake(draft.context.now + draft.context.startTimeoutMs);
  return added;
}

/** Merges what was said of an allocation into its runner and lets the phase follow. */
export function applyAllocation(draft: Draft, id: RunnerId, allocation: Allocation): void {
  const runner = draft.runner(id);
  if (!runner) return;
  const merge = mergeAllocation(runner.allocations, allocation, draft.sequence);
  if (!merge) return;
  const before = currentOf(runner.allocations);
  const after = currentOf(merge.records);
  const isCurrent = after?.id === allocation.id;
  const restarted = merge.restarted && isCurrent;
  const isNewLife = restarted || (before !== undefined && before.id !== after?.id);
  const next: Runner = {
    ...runner,
    seen: draft.sequence,
    allocations: merge.records,
    generation: runner.generation + (isNewLife ? 1 : 0),
  };
  draft.setRunner(next);
  follow(draft, next, restarted);
}

/** Lets the phase of a runner follow its allocations and their nodes. */
export function follow(draft: Draft, runner: Runner, restarted = false): void {
  const record = currentOf(runner.allocations);
  const { phase } = runner;
  switch (phase.name) {
    case 'starting':
    case 'idle':
      followUnclaimed(draft, runner, record);
      return;
    case 'adopting':
      if (record && isFit(record, draft.isNodeDown)) becomeUsed(draft, runner, record, phase.timeoutSeconds);
      // It ran when it was claimed: whatever it does now, what its client had is lost.
      else if (record) remove(draft, runner, goneReason(record, draft.isNodeDown));
      return;
    case 'used': {
      const reason = lossOf(runner, phase.allocationId, restarted, draft.isNodeDown);
      if (reason) remove(draft, runner, reason);
      return;
    }
    case 'claiming': {
      const reason = lossOf(runner, record?.id, restarted, draft.isNodeDown);
      if (reason || phase.generation !== runner.generation) {
        draft.setPhase(runner, { ...phase, lost: phase.lost ?? reason ?? 'allocation-stopped' });
      }
      return;
    }
    case 'foreign':
    case 'removing':
  }
}

function followUnclaimed(draft: Draft, runner: Runner, record: AllocationRecord | undefined): void {
  const { context } = draft;
  if (record && isFit(record, draft.isNodeDown)) {
    if (runner.phase.name === 'idle') return;
    draft.setPhase(runner, { name: 'idle' });
    poolStarted(draft, runner.environmentId);
    return;
  }
  // What is nobody's is the leader's to give up.
  if (record && !mayRecover(record) && draft.cluster.leads) {
    poolFailed(draft, runner.environmentId, record.failure ?? 'the main process of the runner ended', true);
    remove(draft, runner, 'failed');
    return;
  }
  if (runner.phase.name === 'starting') {
    // An allocation that exists was placed, so a placement failure is over.
    if (record && runner.phase.blocked !== undefined) {
      draft.setPhase(runner, { ...runner.phase, blocked: undefined });
    }
    return;
  }
  draft.setPhase(runner, { name: 'starting', since: context.now, blocked: undefined });
  draft.wake(context.now + context.startTimeoutMs);
}

/** Why what ran in this allocation of a runner is lost, or undefined while all is well. */
export function lossOf(
  runner: Runner,
  allocationId: AllocationRecord['id'] | undefined,
  restarted: boolean,
  isNodeDown: IsNodeDown,
): GoneReason | undefined {
  const own = runner.allocations.find((record) => record.id === allocationId);
  if (!own) return 'allocation-stopped';
  if (restarted) return own.outOfMemory ? 'out-of-memory' : 'restarted';
  if (!isFit(own, isNodeDown)) return goneReason(own, isNodeDown);
  return currentOf(runner.allocations)?.id === own.id ? undefined : 'allocation-stopped';
}

/** Makes a runner its client's. */
export function becomeUsed(
  draft: Draft,
  runner: Runner,
  record: AllocationRecord,
  timeoutSeconds: number,
): void {
  draft.setPhase(runner, { name: 'used', allocationId: record.id, timeoutSeconds });
  draft.effect({ kind: 'claimed', id: runner.id });
}
