import { replacesTasks } from '../state/job-changes.js';
import type { Allocation, Job, TaskGroup } from '../state/records.js';
import { isTerminal } from '../state/records.js';
import { isRescheduleDue } from './reschedule.js';

/**
 * A job and its allocations → what has to change so that the one matches the other.
 *
 * The rules are Nomad's for one node: an allocation goes on as it is, is updated in place, or is stopped and replaced;
 * a slot of a group whose allocation ended under this very version of a batch job stays empty.
 */
export interface Changes {
  readonly stops: readonly { readonly allocation: Allocation; readonly description: string }[];
  readonly inPlace: readonly Allocation[];
  readonly places: readonly Slot[];
}

/** One allocation that a group lacks, and the one that it follows. */
export interface Slot {
  readonly group: TaskGroup;
  readonly name: string;
  readonly previous: Allocation | undefined;
}

const NOT_NEEDED = 'alloc not needed due to job update';

export function reconcile(job: Job | undefined, allocations: readonly Allocation[], nowNs: number): Changes {
  const stops: { allocation: Allocation; description: string }[] = [];
  const inPlace: Allocation[] = [];
  const places: Slot[] = [];
  const wanted = job && !job.Stop ? slotsOf(job) : new Map<string, TaskGroup>();
  const filled = new Set<string>();

  for (const allocation of allocations) {
    const group = wanted.get(allocation.Name);
    if (!job || !group) {
      if (!isTerminal(allocation)) stops.push({ allocation, description: NOT_NEEDED });
      continue;
    }
    const { Name: name } = allocation;
    const replace = (description: string): void => {
      stops.push({ allocation, description });
      places.push({ group, name, previous: allocation });
      filled.add(name);
    };
    switch (fate(job, allocation, nowNs)) {
      case 'forget':
        break;
      case 'keep':
        filled.add(name);
        break;
      case 'update':
        inPlace.push(allocation);
        filled.add(name);
        break;
      case 'migrate':
        replace('alloc is being migrated');
        break;
      case 'replace':
        replace('alloc is being updated due to job update');
        break;
      case 'reschedule':
        replace('alloc was rescheduled because it failed');
        break;
    }
  }
  for (const [name, group] of wanted) {
    if (!filled.has(name)) places.push({ group, name, previous: undefined });
  }
  return { stops, inPlace, places };
}

type Fate = 'forget' | 'keep' | 'update' | 'migrate' | 'replace' | 'reschedule';

function fate(job: Job, allocation: Allocation, nowNs: number): Fate {
  const isCurrent = allocation.Job.JobModifyIndex === job.JobModifyIndex;
  if (isTerminal(allocation)) {
    if (!isCurrent) return 'forget';
    // A batch allocation that ended without a failure is done, even if it was stopped while it waited for a new place.
    if (allocation.ClientStatus === 'complete') return job.Type === 'batch' ? 'keep' : 'forget';
    if (allocation.DesiredStatus === 'stop') return 'forget';
    return isRescheduleDue(allocation, nowNs) ? 'reschedule' : 'keep';
  }
  if (allocation.Migrate) return 'migrate';
  if (isCurrent) return 'keep';
  return replacesTasks(allocation.Job, job, allocation.TaskGroup) ? 'replace' : 'update';
}

/** Names of all allocations that the job wants. */
function slotsOf(job: Job): Map<string, TaskGroup> {
  const slots = new Map<string, TaskGroup>();
  for (const group of job.TaskGroups) {
    for (let at = 0; at < group.Count; at += 1) slots.set(`${job.ID}.${group.Name}[${at}]`, group);
  }
  return slots;
}
