/**
 * What is remembered of a runner's allocations, and what a newer observation of one means.
 *
 * Several allocations of one job may be alive for a while (a drained or cut-off node): each has its own record, ordered
 * by `modifyIndex` for itself, and the newest that is wanted and not ended is the one that counts. So the late end of
 * an older one never touches the newer, and an older one that survives is found again.
 */
import type { AllocationId } from '../base/ids.js';
import type { Allocation, MappedPort } from '../nomad/model.js';
import { DEFAULT_TASK } from '../environments/base-job.js';
import type { GoneReason } from './runner.js';

export interface AllocationRecord {
  readonly id: AllocationId;
  readonly nodeId: string;
  readonly clientStatus: Allocation['clientStatus'];
  readonly desiredStatus: Allocation['desiredStatus'];
  readonly createIndex: number;
  readonly modifyIndex: number;
  readonly replaced: boolean;
  readonly task: TaskRecord | undefined;
  readonly ports: readonly MappedPort[] | undefined;
  /** Nomad's evidence that the task last ended for want of memory. */
  readonly outOfMemory: boolean;
  /** Why it failed, in Nomad's words. */
  readonly failure: string | undefined;
  /** Sequence of the observation; a listing that began later and lacks the allocation says that it ended. */
  readonly seen: number;
}

interface TaskRecord {
  readonly state: 'pending' | 'running' | 'dead';
  readonly restarts: number;
  readonly startedAt: string | undefined;
  readonly lastRestart: string | undefined;
}

/** More are never alive at once; a job that Nomad moves about for ever keeps the newest. */
const MAX_RECORDS = 8;

export function createRecord(allocation: Allocation, seen: number): AllocationRecord {
  const task = allocation.tasks?.[DEFAULT_TASK];
  const ends = task?.events.filter((event) => event.type === 'Terminated') ?? [];
  return {
    id: allocation.id,
    nodeId: allocation.nodeId,
    clientStatus: allocation.clientStatus,
    desiredStatus: allocation.desiredStatus,
    createIndex: allocation.createIndex,
    modifyIndex: allocation.modifyIndex,
    replaced: allocation.nextAllocation !== undefined,
    task: task && {
      state: task.state,
      restarts: task.restarts,
      startedAt: task.startedAt,
      lastRestart: task.lastRestart,
    },
    ports: allocation.ports,
    outOfMemory: ends.at(-1)?.oomKilled ?? false,
    failure: allocation.clientStatus === 'failed' ? describeFailure(allocation) : undefined,
    seen,
  };
}

function describeFailure(allocation: Allocation): string {
  const events = allocation.tasks?.[DEFAULT_TASK]?.events ?? [];
  const told = events.filter((event) => event.message !== '' && !/^Not Restarting$/.test(event.type));
  const last = told.findLast((event) => /Fail|Error|Invalid|Terminated/i.test(event.type)) ?? told.at(-1);
  return last ? `${last.type}: ${last.message}` : allocation.description || 'the task failed';
}

export interface Merge {
  readonly records: readonly AllocationRecord[];
  /** The same allocation, but what ran in it is gone. */
  readonly restarted: boolean;
}

/** Merges one observation; undefined where it is old news. */
export function mergeAllocation(
  records: readonly AllocationRecord[],
  allocation: Allocation,
  seen: number,
): Merge | undefined {
  const known = records.find((record) => record.id === allocation.id);
  const next = createRecord(allocation, seen);
  if (known && known.modifyIndex >= next.modifyIndex) return fillIn(records, known, next);
  if (!known && records.length >= MAX_RECORDS && next.createIndex <= (records.at(-1)?.createIndex ?? 0)) {
    return undefined;
  }
  const merged = { ...next, task: next.task ?? known?.task, ports: next.ports ?? known?.ports };
  const others = records.filter((record) => record.id !== allocation.id);
  return {
    records: [...others, merged].sort((a, b) => b.createIndex - a.createIndex).slice(0, MAX_RECORDS),
    restarted: known !== undefined && hasRestarted(known, next),
  };
}

/** The same state told again: it may hold what a shorter form left out, and it proves that the allocation is there. */
function fillIn(
  records: readonly AllocationRecord[],
  known: AllocationRecord,
  again: AllocationRecord,
): Merge | undefined {
  if (known.modifyIndex > again.modifyIndex) return undefined;
  const full = {
    ...known,
    task: known.task ?? again.task,
    ports: known.ports ?? again.ports,
    seen: again.seen,
  };
  return { records: records.map((record) => (record === known ? full : record)), restarted: false };
}

/** Marks what a listing of all living allocations, begun at `startedAt`, did not hold any more. */
export function endUnlisted(
  records: readonly AllocationRecord[],
  listed: ReadonlySet<AllocationId>,
  startedAt: number,
): readonly AllocationRecord[] {
  const isGone = (record: AllocationRecord): boolean =>
    isAlive(record) && record.seen <= startedAt && !listed.has(record.id);
  if (!records.some(isGone)) return records;
  return records.map((record) =>
    isGone(record)
      ? { ...record, clientStatus: 'complete' as const, desiredStatus: 'stop' as const }
      : record,
  );
}

/**
 * Evidence, in what Nomad says of the task, that it was started again. A further look at the same life (a claim's own
 * write, an agent that was restarted) shows the same count and the same start, and is none.
 */
function hasRestarted(known: AllocationRecord, next: AllocationRecord): boolean {
  const before = known.task;
  const after = next.task;
  if (before && after) {
    if (after.restarts > before.restarts) return true;
    if (after.lastRestart !== undefined && after.lastRestart !== before.lastRestart) return true;
    if (before.startedAt !== undefined && after.startedAt !== undefined) {
      if (before.startedAt !== after.startedAt) return true;
      if (after.state === 'running') return false;
    }
  }
  return known.clientStatus === 'running' && next.clientStatus === 'pending';
}

/** Wanted and not ended: it runs, or may yet run or come back. */
export function isAlive(record: AllocationRecord): boolean {
  const { clientStatus, desiredStatus } = record;
  if (desiredStatus !== 'run') return false;
  return clientStatus === 'pending' || clientStatus === 'running' || clientStatus === 'unknown';
}

/** The allocation that counts: the newest living one, or else the newest. */
export function currentOf(records: readonly AllocationRecord[]): AllocationRecord | undefined {
  return records.find(isAlive) ?? records[0];
}

/** Whether a node is down or cut off. */
export type IsNodeDown = (nodeId: string) => boolean;

/** Runs where it can be reached. */
export function isFit(record: AllocationRecord, isNodeDown: IsNodeDown): boolean {
  const task = record.task;
  const runs =
    record.clientStatus === 'running'
      ? task === undefined || task.state === 'running'
      : record.clientStatus === 'pending' && task?.state === 'running';
  return runs && record.desiredStatus === 'run' && !isNodeDown(record.nodeId);
}

/**
 * Whether a runner whose allocation does not run may still become fit: it waits for its own start, for its node, or for
 * the replacement that Nomad makes of a stopped or lost one. A failed or finished one is given up.
 */
export function mayRecover(record: AllocationRecord): boolean {
  if (isAlive(record) || record.replaced) return true;
  return (
    record.clientStatus === 'lost' || (record.desiredStatus !== 'run' && record.clientStatus !== 'failed')
  );
}

/** What to tell the client of a runner whose allocation is in this state. */
export function goneReason(record: AllocationRecord, isNodeDown: IsNodeDown): GoneReason {
  const { clientStatus, desiredStatus } = record;
  if (clientStatus === 'lost' || clientStatus === 'unknown' || isNodeDown(record.nodeId)) {
    return 'allocation-lost';
  }
  if (record.outOfMemory && desiredStatus === 'run') return 'out-of-memory';
  return 'allocation-stopped';
}
