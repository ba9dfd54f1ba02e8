/**
 * How a listing is merged into what is known.
 *
 * A listing takes time, so it may be older than some of what is known: only what was known before its first request
 * was sent, and is not in it, is gone. What it holds is merged by index like any event. So a listing never undoes
 * anything that happened meanwhile, and running work survives it.
 */
import type { AllocationId, EnvironmentId, RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import type { NomadNode } from '../nomad/model.js';
import { currentOf, endUnlisted, goneReason, isAlive } from './allocation-record.js';
import type { Draft } from './draft.js';
import { forget, remove } from './leave.js';
import { addStarting, applyAllocation, follow } from './life.js';
import type { Listing, RunnerJob } from './observation.js';
import { followWrite, noteJob } from './ownership.js';
import { poolFailed } from './pool-health.js';
import type { Runner } from './state.js';
import { applyTemplates } from './templates.js';

/** Late events of a purged runner are expected for this long at most. */
const GRAVE_MS = 600_000;

export function applyListing(draft: Draft, listing: Listing): void {
  draft.set({ synced: true, reachable: true, listedIndex: listing.index });
  applyNodes(draft, listing.nodes, listing.startedAt);
  const inUse = new Set(listing.runners.map((job) => job.environmentId));
  applyTemplates(draft, listing.templates, listing.startedAt, (id) => inUse.has(id));
  const listed = new Set<RunnerId>();
  for (const job of listing.runners) {
    listed.add(job.id);
    applyListedJob(draft, job, listing.startedAt);
  }
  for (const allocation of listing.allocations) {
    const parsed = parseRunnerId(allocation.jobId);
    if (parsed) applyAllocation(draft, parsed.runnerId, allocation);
  }
  const alive = new Set(listing.allocations.map((allocation) => allocation.id));
  for (const pool of draft.pools()) {
    const { id } = pool.stored.environment;
    for (const runner of draft.members(id)) applyAbsence(draft, runner, listed, alive, listing.startedAt);
    draft.touched.add(id);
  }
  for (const job of listing.runners) applyDeadJob(draft, job);
  tidyGraves(draft, listed, listing.startedAt);
}

function applyNodes(draft: Draft, nodes: readonly NomadNode[], startedAt: number): void {
  const listed = new Set(nodes.map((node) => node.id));
  for (const id of draft.nodeIds()) if (!listed.has(id)) draft.setNode(id, undefined);
  for (const node of nodes) applyNode(draft, node, startedAt);
}

/**
 * One node: what runs on it follows when it goes down and when it comes back. `startedAt` is that of a listing, which
 * is believed over everything older, even where Nomad's indexes have begun anew.
 */
export function applyNode(draft: Draft, node: NomadNode, startedAt = 0): void {
  const known = draft.node(node.id);
  if (known && known.seen > startedAt && known.modifyIndex >= node.modifyIndex) return;
  const down = node.status === 'down' || node.status === 'disconnected';
  draft.setNode(node.id, { modifyIndex: node.modifyIndex, down, seen: draft.sequence });
  if ((known?.down ?? false) === down) return;
  for (const pool of draft.pools()) {
    for (const runner of draft.members(pool.stored.environment.id)) {
      if (runner.allocations.some((record) => record.nodeId === node.id)) follow(draft, runner);
    }
  }
}

function applyListedJob(draft: Draft, job: RunnerJob, startedAt: number): void {
  const grave = draft.grave(job.id);
  if (grave) {
    if (grave.sequence <= startedAt) purgeAgain(draft, job);
    return;
  }
  applyJob(draft, job);
}

/** What a job says of its runner: a new one is taken in, a known one that somebody else claimed is no longer idle. */
export function applyJob(draft: Draft, job: RunnerJob): void {
  const pool = draft.pool(job.environmentId);
  if (!pool) return;
  const known = draft.runner(job.id);
  if (!known) {
    adopt(draft, job);
    return;
  }
  followWrite(draft, noteJob(draft, known, job));
}

function adopt(draft: Draft, job: RunnerJob): void {
  const { id, environmentId, spec } = job;
  const runner = addStarting(draft, { id, environmentId, spec, seen: draft.sequence });
  const noted = noteJob(draft, runner, job);
  if (draft.pool(environmentId)?.phase === 'deleting') remove(draft, noted, 'environment-deleted');
  else followWrite(draft, noted);
}

/** A job that was purged and is there all the same. */
export function purgeAgain(draft: Draft, job: { id: RunnerId; environmentId: EnvironmentId }): void {
  draft.forgetGrave(job.id);
  const runner = addStarting(draft, { ...job, spec: undefined, seen: draft.sequence });
  remove(draft, runner, 'purged-outside');
}

function applyAbsence(
  draft: Draft,
  runner: Runner,
  listed: ReadonlySet<RunnerId>,
  alive: ReadonlySet<AllocationId>,
  startedAt: number,
): void {
  if (runner.phase.name === 'removing') return;
  if (!listed.has(runner.id)) {
    if (runner.seen === undefined || runner.seen > startedAt) return;
    if (runner.phase.name === 'foreign') forget(draft, runner, 'purged-outside');
    else remove(draft, runner, 'purged-outside');
    return;
  }
  const allocations = endUnlisted(runner.allocations, alive, startedAt);
  if (runner.phase.name === 'adopting' && allocations.length === 0) {
    remove(draft, runner, 'allocation-stopped');
    return;
  }
  if (allocations === runner.allocations) return;
  const next = { ...runner, allocations };
  draft.setRunner(next);
  follow(draft, next);
}

/** A job that was stopped, or that ended and has no living allocation: it will not run again. */
export function applyDeadJob(draft: Draft, job: RunnerJob): void {
  const runner = draft.runner(job.id);
  if (!runner) return;
  const record = currentOf(runner.allocations);
  if (!job.stopped && !(job.ended && !(record && isAlive(record)))) return;
  switch (runner.phase.name) {
    case 'starting':
    case 'idle':
      if (!draft.cluster.leads) return;
      poolFailed(draft, runner.environmentId, record?.failure ?? 'the job of a runner ended', true);
      remove(draft, runner, 'failed');
      return;
    case 'adopting':
    case 'used':
    case 'claiming':
      remove(draft, runner, record ? goneReason(record, draft.isNodeDown) : 'allocation-stopped');
      return;
    case 'foreign':
    case 'removing':
  }
}

function tidyGraves(draft: Draft, listed: ReadonlySet<RunnerId>, startedAt: number): void {
  for (const [id, grave] of draft.graves()) {
    const isOld = draft.context.now - grave.since > GRAVE_MS;
    if (isOld && grave.sequence <= startedAt && !listed.has(id)) draft.forgetGrave(id);
  }
}
