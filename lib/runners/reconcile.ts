/**
 * The reconciler: (what is known, one observation) → (what is known then, what is to be done). A pure function, so that
 * every order of events can be tried in tests.
 *
 * Invariants, whatever the interleaving, duplication or loss of observations:
 * - a runner that was taken once is never claimable again, and is handed to one claim at most;
 * - an observation that is not newer than what is known of its object changes nothing;
 * - after a listing, what is known is what was listed, plus what happened since it began;
 * - idle and starting runners of the current specification together are as many as are wanted, unless the pool waits.
 *
 * Not here: the parts of the rules (life.ts one runner, pool.ts one pool, listing.ts the merge of a listing,
 * allocation-record.ts the order of allocations) and the doing of what is asked for (manager.ts and what it calls).
 */
import type { RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import { parseTemplateJobId } from '../environments/template.js';
import type { Allocation, Evaluation } from '../nomad/model.js';
import { describePlacementFailure } from '../nomad/placement.js';
import { currentOf, isAlive } from './allocation-record.js';
import type { Step } from './draft.js';
import { Draft } from './draft.js';
import { onClaimSettled, onTaken } from './claiming.js';
import { forget, remove } from './leave.js';
import { applyAllocation } from './life.js';
import { applyDeadJob, applyJob, applyListing, applyNode, purgeAgain } from './listing.js';
import type { Context, Observation, RunnerJob } from './observation.js';
import { applyCluster, onKept } from './ownership.js';
import { applyCheck, endLate, plan } from './pool.js';
import { easeDoubt, poolFailed } from './pool-health.js';
import type { RemovalReason, State } from './state.js';
import { environmentOf } from './state.js';
import {
  applyTemplates,
  onEnvironmentDeleting,
  onTemplateFound,
  onTemplateJob,
  onTemplatePurged,
  onTemplateRead,
} from './templates.js';

/** What one observation changes and asks for. Leaves `state` as it is. */
export function reconcile(state: State, observation: Observation, context: Context): Step {
  const draft = new Draft(state, context);
  apply(draft, observation);
  for (const id of draft.touched) plan(draft, id);
  return draft.step();
}

function apply(draft: Draft, observation: Observation): void {
  switch (observation.kind) {
    case 'allocation':
      onAllocation(draft, observation.allocation);
      return;
    case 'evaluation':
      onEvaluation(draft, observation.evaluation);
      return;
    case 'runner-job':
      onRunnerJob(draft, observation.job);
      return;
    case 'template-job':
      onTemplateJob(draft, observation.stored);
      return;
    case 'node':
      applyNode(draft, observation.node);
      return;
    case 'listing':
      applyListing(draft, observation.listing);
      onTick(draft);
      return;
    case 'templates':
      applyTemplates(draft, observation.templates, observation.startedAt);
      return;
    case 'unreachable':
      draft.set({ reachable: false });
      return;
    case 'registered':
      onRegistered(draft, observation.id);
      return;
    case 'not-registered':
      onNotRegistered(draft, observation.id, observation.reason);
      return;
    case 'cluster':
      applyCluster(draft, observation.view);
      onTick(draft);
      return;
    case 'withdrawn':
      onWithdrawn(draft, observation.id);
      return;
    case 'kept':
      onKept(draft, observation.job);
      return;
    case 'template-read':
      onTemplateRead(draft, observation.stored);
      return;
    case 'purged':
      if (draft.runner(observation.id)?.phase.name === 'removing') draft.bury(observation.id);
      return;
    case 'inspected':
      onInspected(draft, observation.id, observation.job, observation.allocations);
      return;
    case 'taken':
      onTaken(draft, observation.id, observation.timeoutSeconds);
      return;
    case 'claim-settled':
      onClaimSettled(draft, observation.id, observation.outcome);
      return;
    case 'released':
      onReleased(draft, observation.id, observation.reason);
      return;
    case 'checked':
      applyCheck(draft, observation.id, observation.fault);
      return;
    case 'template-found':
      onTemplateFound(draft, observation.stored);
      return;
    case 'restored':
      if (draft.pool(observation.stored.environment.id)?.phase === 'wanted')
        draft.setTemplate(observation.stored);
      return;
    case 'environment-put':
      draft.setTemplate(observation.stored);
      draft.setPool(observation.stored.environment.id, { phase: 'wanted' });
      return;
    case 'environment-deleting':
      onEnvironmentDeleting(draft, observation.stored);
      return;
    case 'environment-deleted':
      draft.removePool(observation.id, draft.pool(observation.id)?.stored.jobModifyIndex ?? 0);
      return;
    case 'tick':
      onTick(draft);
  }
}

function onAllocation(draft: Draft, allocation: Allocation): void {
  const parsed = parseRunnerId(allocation.jobId);
  if (!parsed) return; // of a template, or of somebody else
  const { runnerId: id, environmentId } = parsed;
  if (draft.runner(id)) {
    applyAllocation(draft, id, allocation);
    return;
  }
  const isWanted =
    allocation.desiredStatus === 'run' && ['pending', 'running'].includes(allocation.clientStatus);
  if (!isWanted) return;
  if (draft.grave(id)) {
    purgeAgain(draft, { id, environmentId });
    return;
  }
  lookIfNews(draft, id, allocation.modifyIndex);
}

function onEvaluation(draft: Draft, evaluation: Evaluation): void {
  const template = parseTemplateJobId(evaluation.jobId);
  if (template !== undefined) {
    onTemplatePurged(draft, template, evaluation);
    return;
  }
  const parsed = parseRunnerId(evaluation.jobId);
  const runner = parsed && draft.runner(parsed.runnerId);
  if (!runner) return;
  if (evaluation.triggeredBy === 'job-deregister') {
    if (runner.phase.name === 'foreign') forget(draft, runner, 'purged-outside');
    else remove(draft, runner, 'purged-outside');
    return;
  }
  const isFailure = evaluation.status === 'failed' || Object.keys(evaluation.failedGroups).length > 0;
  if (!isFailure || evaluation.status === 'canceled' || runner.phase.name !== 'starting') return;
  const record = currentOf(runner.allocations);
  if (record && isAlive(record)) return; // placed since
  const failure = describePlacementFailure(evaluation);
  poolFailed(draft, runner.environmentId, failure, false);
  draft.setPhase(runner, { ...runner.phase, blocked: failure });
}

function onRunnerJob(draft: Draft, job: RunnerJob): void {
  if (draft.grave(job.id)) return; // its allocation tells, should it really live on
  if (!draft.runner(job.id)) {
    lookIfNews(draft, job.id, job.modifyIndex);
    return;
  }
  applyJob(draft, job);
  applyDeadJob(draft, job);
}

/**
 * A runner never heard of, in an event that may be a replay of long ago: whose it is, and whether it is there at all,
 * its job tells. What is older than the last listing and was not in it is gone, and needs no look.
 */
function lookIfNews(draft: Draft, id: RunnerId, modifyIndex: number): void {
  const isNews = draft.synced && modifyIndex > draft.listedIndex;
  if (isNews && draft.pool(environmentOf(id))) draft.effect({ kind: 'inspect', id });
}

function onRegistered(draft: Draft, id: RunnerId): void {
  const runner = draft.runner(id);
  if (runner) draft.setRunner({ ...runner, seen: draft.sequence });
  // Its environment was deleted elsewhere meanwhile, by somebody who did not know of it.
  if (runner && draft.pool(runner.environmentId)?.phase !== 'wanted')
    remove(draft, runner, 'environment-deleted');
  if (!runner) purgeAgain(draft, { id, environmentId: environmentOf(id) });
}

/** Whether Nomad has the job is unknown, so its name is given up and purged. */
function onNotRegistered(draft: Draft, id: RunnerId, reason: string): void {
  const runner = draft.runner(id);
  if (!runner) return;
  poolFailed(draft, runner.environmentId, reason, false);
  remove(draft, runner, 'failed');
}

/** It never was in Nomad. */
function onWithdrawn(draft: Draft, id: RunnerId): void {
  const runner = draft.runner(id);
  if (runner?.phase.name === 'starting') draft.drop(id);
}

function onInspected(
  draft: Draft,
  id: RunnerId,
  job: RunnerJob | undefined,
  allocations: readonly Allocation[],
): void {
  const runner = draft.runner(id);
  if (!job) {
    if (runner) remove(draft, runner, 'purged-outside');
    return;
  }
  if (draft.grave(id)) return;
  applyJob(draft, job);
  const newestFirst = [...allocations].sort((a, b) => b.createIndex - a.createIndex);
  for (const allocation of newestFirst) applyAllocation(draft, id, allocation);
  applyDeadJob(draft, job);
}

function onReleased(draft: Draft, id: RunnerId, reason: RemovalReason): void {
  const runner = draft.runner(id);
  if (runner?.phase.name === 'used') remove(draft, runner, reason);
}

function onTick(draft: Draft): void {
  if (!draft.synced || !draft.reachable) return;
  for (const pool of draft.pools()) {
    endLate(draft, pool);
    easeDoubt(draft, pool.stored.environment.id);
    draft.touched.add(pool.stored.environment.id);
  }
}
