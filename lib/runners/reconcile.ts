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
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import { parseRunnerId } from '../base/ids.js';
import type { StoredEnvironment } from '../environments/store.js';
import { parseTemplateJobId } from '../environments/template.js';
import type { Allocation, Evaluation } from '../nomad/model.js';
import { describePlacementFailure } from '../nomad/placement.js';
import { currentOf, isAlive } from './allocation-record.js';
import type { Step } from './draft.js';
import { Draft } from './draft.js';
import { applyAllocation, becomeUsed, follow, remove, removeClaimed } from './life.js';
import {
  adoptUsed,
  applyDeadJob,
  applyJob,
  applyListing,
  applyNode,
  applyTemplates,
  isDeletedTemplate,
  purgeAgain,
} from './listing.js';
import type { ClaimOutcome, Context, Observation, RunnerJob } from './observation.js';
import { applyCheck, plan, replaceLate } from './pool.js';
import { easeDoubt, poolFailed } from './pool-health.js';
import type { RemovalReason, State } from './state.js';
import { environmentOf, isCurrent } from './state.js';

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
      return;
    case 'environment-deleting':
      onEnvironmentDeleting(draft, observation.id);
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
    const pool = draft.pool(template);
    const isNews = pool && evaluation.createIndex > pool.stored.jobModifyIndex;
    // Purged by nobody of ours: a deletion has the phase `deleting` before its purge is sent.
    if (isNews && pool.phase === 'wanted' && evaluation.triggeredBy === 'job-deregister') {
      draft.effect({ kind: 'restore', id: template });
    }
    return;
  }
  const parsed = parseRunnerId(evaluation.jobId);
  const runner = parsed && draft.runner(parsed.runnerId);
  if (!runner) return;
  if (evaluation.triggeredBy === 'job-deregister') {
    remove(draft, runner, 'purged-outside');
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

/** Our own templates are taken in as they are registered, by whichever replica; those of other tools by a listing. */
function onTemplateJob(draft: Draft, stored: StoredEnvironment): void {
  const { id } = stored.environment;
  const pool = draft.pool(id);
  if (stored.foreign || stored.dead || pool?.phase === 'deleting' || isDeletedTemplate(draft, stored)) return;
  if (pool) {
    if (stored.jobModifyIndex > pool.stored.jobModifyIndex) draft.setTemplate(stored);
    return;
  }
  // The first listing brings what is there. Later on, an event may still be a replay from before a deletion.
  if (draft.synced) draft.effect({ kind: 'inspect-template', id });
}

function onTemplateFound(draft: Draft, stored: StoredEnvironment): void {
  if (draft.pool(stored.environment.id) || isDeletedTemplate(draft, stored)) return;
  draft.setTemplate(stored);
}

function onRegistered(draft: Draft, id: RunnerId): void {
  const runner = draft.runner(id);
  if (runner) draft.setRunner({ ...runner, seen: draft.sequence });
  else purgeAgain(draft, { id, environmentId: environmentOf(id) });
}

/** Whether Nomad has the job is unknown, so its name is given up and purged. */
function onNotRegistered(draft: Draft, id: RunnerId, reason: string): void {
  const runner = draft.runner(id);
  if (!runner) return;
  poolFailed(draft, runner.environmentId, reason, false);
  remove(draft, runner, 'failed');
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

function onTaken(draft: Draft, id: RunnerId, timeoutSeconds: number): void {
  const runner = draft.runner(id);
  if (runner?.phase.name !== 'idle') return;
  draft.setPhase(runner, {
    name: 'claiming',
    generation: runner.generation,
    timeoutSeconds,
    lost: undefined,
  });
}

function onClaimSettled(draft: Draft, id: RunnerId, outcome: ClaimOutcome): void {
  const runner = draft.runner(id);
  if (runner?.phase.name !== 'claiming') return;
  const { lost, timeoutSeconds } = runner.phase;
  const pool = draft.pool(runner.environmentId);
  switch (outcome.kind) {
    case 'written': {
      const record = currentOf(runner.allocations);
      const isOutdated = !pool || !isCurrent(runner, pool.stored);
      if (lost !== undefined || !record || isOutdated) removeClaimed(draft, runner, lost ?? 'retired');
      else becomeUsed(draft, runner, record, timeoutSeconds);
      return;
    }
    case 'foreign':
      if (lost !== undefined) removeClaimed(draft, runner, lost);
      else adoptUsed(draft, runner, outcome.timeoutSeconds);
      return;
    case 'untouched':
      if (lost !== undefined) removeClaimed(draft, runner, lost);
      else follow(draft, draft.setPhase(runner, { name: 'idle' }));
      return;
    case 'absent':
      removeClaimed(draft, runner, 'purged-outside');
      return;
    case 'uncertain':
      removeClaimed(draft, runner, 'unconfirmed-write');
  }
}

function onReleased(draft: Draft, id: RunnerId, reason: RemovalReason): void {
  const runner = draft.runner(id);
  if (runner?.phase.name === 'used') remove(draft, runner, reason);
}

function onEnvironmentDeleting(draft: Draft, id: EnvironmentId): void {
  draft.setPool(id, { phase: 'deleting' });
  for (const runner of draft.members(id)) remove(draft, runner, 'environment-deleted');
}

function onTick(draft: Draft): void {
  if (!draft.synced || !draft.reachable) return;
  for (const pool of draft.pools()) {
    replaceLate(draft, pool);
    easeDoubt(draft, pool.stored.environment.id);
    draft.touched.add(pool.stored.environment.id);
  }
}
