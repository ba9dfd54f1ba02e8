/**
 * Reads everything that Nomad holds: a handful of lists at once, whatever the number of runners.
 *
 * Rows of a job list have no groups, so who is used comes from a second list with a filter, and what each used runner
 * that is new to us was claimed with takes a request of its own. Idle ones take none.
 */
import type { RunnerId } from '../base/ids.js';
import { Slots } from '../base/slots.js';
import type { EnvironmentStore } from '../environments/store.js';
import type { Nomad } from '../nomad/api.js';
import type { JobRow } from '../nomad/model.js';
import { readRunnerJob, readRunnerRow } from './job.js';
import type { Listing, RunnerJob } from './observation.js';

/** Nomad's filter for the jobs of used runners. */
export const USED_RUNNERS = 'any TaskGroups as tg { tg.Name == "config" and tg.Meta["used"] == "true" }';
/** Nomad's filter for allocations that run, or may run yet or again. */
export const LIVING_ALLOCATIONS =
  'ClientStatus == "running" or ClientStatus == "pending" or ClientStatus == "unknown"';

const PARALLEL_LOOKS = 20;

export interface ReadListingOptions {
  readonly nomad: Nomad;
  readonly store: EnvironmentStore;
  /** Sequence of the state now, before anything is asked. */
  readonly startedAt: number;
  /** True for a used runner whose job needs no look, since what it says is known here. */
  readonly isKnown: (id: RunnerId, jobModifyIndex: number) => boolean;
  readonly signal: AbortSignal;
}

/** Rejects with the first failure; what was read until then is of no use alone. */
export async function readListing(options: ReadListingOptions): Promise<Listing> {
  const { nomad, store, startedAt, signal } = options;
  const [rows, used, allocations, nodes] = await Promise.all([
    nomad.jobs.list({ meta: true, signal }),
    nomad.jobs.list({ filter: USED_RUNNERS, meta: true, signal }),
    nomad.allocations.list({ filter: LIVING_ALLOCATIONS, details: true, signal }),
    nomad.nodes.list(signal),
  ]);
  const [templates, usedJobs] = await Promise.all([store.read(rows, signal), lookAtUsed(used, options)]);
  const runners = new Map<RunnerId, RunnerJob>();
  for (const row of [...rows].sort((a, b) => a.createIndex - b.createIndex)) {
    const job = readRunnerRow(row);
    if (job) runners.set(job.id, job);
  }
  for (const job of usedJobs) runners.set(job.id, job);
  const index = rows.reduce((highest, row) => Math.max(highest, row.modifyIndex), 0);
  return { startedAt, index, templates, runners: [...runners.values()], allocations, nodes };
}

async function lookAtUsed(rows: readonly JobRow[], options: ReadListingOptions): Promise<RunnerJob[]> {
  const { nomad, isKnown, signal } = options;
  const slots = new Slots(PARALLEL_LOOKS);
  const jobs = await Promise.all(
    rows.map(async (row) => {
      const job = readRunnerRow(row);
      if (!job || isKnown(job.id, row.jobModifyIndex)) return job;
      const whole = await slots.with(() => nomad.jobs.get(job.id, signal), signal);
      return whole && readRunnerJob(whole);
    }),
  );
  return jobs.filter((job) => job !== undefined);
}
