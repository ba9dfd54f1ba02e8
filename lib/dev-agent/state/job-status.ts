import type { Allocation, ClientStatus, Evaluation, Job, JobStatus } from './records.js';
import { isTerminal } from './records.js';

/**
 * Nomad's rule for the status of a job: running while an allocation is wanted and not ended, pending while an
 * evaluation is open (or nothing happened yet), else dead.
 */
export function jobStatus(allocations: readonly Allocation[], evaluations: readonly Evaluation[]): JobStatus {
  if (allocations.some((allocation) => !isTerminal(allocation))) return 'running';
  const isOpen = (evaluation: Evaluation): boolean =>
    evaluation.Status === 'pending' || evaluation.Status === 'blocked';
  if (evaluations.some(isOpen)) return 'pending';
  return allocations.length + evaluations.length > 0 ? 'dead' : 'pending';
}

const NO_ALLOCATIONS = { Complete: 0, Failed: 0, Lost: 0, Queued: 0, Running: 0, Starting: 0, Unknown: 0 };
type GroupSummary = typeof NO_ALLOCATIONS;

const SUMMARY_FIELD: Readonly<Record<ClientStatus, keyof GroupSummary>> = {
  pending: 'Starting',
  running: 'Running',
  complete: 'Complete',
  failed: 'Failed',
};

/** Per group: how many allocations are in which state, as `GET /v1/job/<id>/summary` gives it. */
export function jobSummary(
  job: Job,
  allocations: readonly Allocation[],
  evaluations: readonly Evaluation[],
): { readonly ModifyIndex: number; readonly [field: string]: unknown } {
  const summary: Record<string, GroupSummary> = {};
  for (const group of job.TaskGroups) summary[group.Name] = { ...NO_ALLOCATIONS };
  let modifyIndex = job.CreateIndex;
  for (const allocation of allocations) {
    const counts = summary[allocation.TaskGroup];
    if (counts) counts[SUMMARY_FIELD[allocation.ClientStatus]] += 1;
    modifyIndex = Math.max(modifyIndex, allocation.ModifyIndex);
  }
  for (const evaluation of evaluations) {
    if (evaluation.Status !== 'blocked') continue;
    for (const [group, queued] of Object.entries(evaluation.QueuedAllocations ?? {})) {
      const counts = summary[group];
      if (counts) counts.Queued = queued;
    }
  }
  return {
    Children: { Dead: 0, Pending: 0, Running: 0 },
    CreateIndex: job.CreateIndex,
    JobID: job.ID,
    ModifyIndex: modifyIndex,
    Namespace: job.Namespace,
    Summary: summary,
  };
}
