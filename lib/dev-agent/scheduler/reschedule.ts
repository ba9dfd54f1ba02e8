import type { Allocation, ReschedulePolicy } from '../state/records.js';

/**
 * Nanoseconds after which a failed allocation is replaced by its job's reschedule policy; undefined for never.
 */
export function rescheduleDelay(allocation: Allocation, nowNs: number): number | undefined {
  const group = allocation.Job.TaskGroups.find(({ Name }) => Name === allocation.TaskGroup);
  if (!group || allocation.ClientStatus !== 'failed' || allocation.NextAllocation !== '') return undefined;
  const policy = group.ReschedulePolicy;
  const inInterval = allocation.RescheduleTimes.filter((time) => time > nowNs - policy.Interval).length;
  if (!policy.Unlimited && inInterval >= policy.Attempts) return undefined;
  return delayOf(policy, allocation.RescheduleTimes.length);
}

/** Timers and the wall clock disagree by a little. */
const TOLERANCE_NS = 50e6;

/** True when the delay of a failed allocation is over. */
export function isRescheduleDue(allocation: Allocation, nowNs: number): boolean {
  const delay = rescheduleDelay(allocation, nowNs);
  return delay !== undefined && nowNs + TOLERANCE_NS >= allocation.ModifyTime + delay;
}

function delayOf({ Delay, DelayFunction, MaxDelay }: ReschedulePolicy, attempts: number): number {
  const longest = MaxDelay > 0 ? MaxDelay : Number.MAX_SAFE_INTEGER;
  if (DelayFunction === 'exponential') return Math.min(Delay * 2 ** attempts, longest);
  if (DelayFunction !== 'fibonacci') return Delay;
  let [last, current] = [0, Delay];
  for (let step = 0; step < attempts && current < longest; step += 1)
    [last, current] = [current, last + current];
  return Math.min(current, longest);
}
