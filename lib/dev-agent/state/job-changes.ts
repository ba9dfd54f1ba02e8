import { isDeepStrictEqual } from 'node:util';
import type { Job, Task, TaskGroup } from './records.js';

/**
 * What a new version of a job means for what runs already.
 *
 * Nomad updates an allocation in place when nothing changed that its tasks can see: another group, the count, the
 * policies for restarts. A change of job-level meta is seen by every task, so it replaces the allocation.
 */
const UNSEEN_BY_TASKS = new Set(['Count', 'RestartPolicy', 'ReschedulePolicy', 'Tasks', 'Meta']);
const UNSEEN_BY_PROCESS = new Set(['RestartPolicy', 'KillTimeout', 'KillSignal', 'LogConfig', 'Meta']);
const SET_BY_SERVER = new Set([
  'CreateIndex',
  'ModifyIndex',
  'JobModifyIndex',
  'Status',
  'SubmitTime',
  'Version',
]);

/** True when the new version asks for something else than the old one: otherwise registering it changes nothing. */
export function specChanged(before: Job, after: Job): boolean {
  return before.Stop || differs(before, after, SET_BY_SERVER);
}

/** True when an allocation of `groupName` cannot go on under the new version. */
export function replacesTasks(before: Job, after: Job, groupName: string): boolean {
  const old = groupOf(before, groupName);
  const new_ = groupOf(after, groupName);
  if (!old || !new_) return true;
  if (differs(old, new_, UNSEEN_BY_TASKS)) return true;
  if (old.Tasks.length !== new_.Tasks.length) return true;
  return old.Tasks.some((task, at) => {
    const other = new_.Tasks[at];
    if (!other || differs(task, other, UNSEEN_BY_PROCESS)) return true;
    return !isDeepStrictEqual(seenMeta(before, old, task), seenMeta(after, new_, other));
  });
}

function groupOf(job: Job, name: string): TaskGroup | undefined {
  return job.TaskGroups.find((group) => group.Name === name);
}

/** Meta as a task finds it in its environment: the task's own over its group's over the job's. */
export function seenMeta(job: Job, group: TaskGroup, task: Task): Record<string, string> {
  return { ...job.Meta, ...group.Meta, ...task.Meta };
}

function differs(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  except: ReadonlySet<string>,
): boolean {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].some((key) => !except.has(key) && !isDeepStrictEqual(before[key], after[key]));
}
