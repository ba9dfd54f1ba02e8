/**
 * The pool of one environment: what it takes to have as many idle runners as are wanted.
 *
 * Idle and starting runners of the current specification count, so a lost listing or a late start never makes surplus.
 * After a failure the pool waits, 1 s doubling to 30 s with jitter, and then tries with a single runner until one
 * starts. Runners of an old specification are never handed out; they stay until the new pool is full, or until it
 * lacks the room that they take.
 */
import type { EnvironmentId, RunnerId } from '../base/ids.js';
import { currentOf } from './allocation-record.js';
import type { Draft } from './draft.js';
import { poolDoubted, poolFailed, poolProved } from './pool-health.js';
import { remove } from './leave.js';
import { addStarting } from './life.js';
import { endOrphan } from './ownership.js';
import type { Pool, Runner } from './state.js';
import { isCurrent } from './state.js';

/** Brings a pool towards what is wanted, where it is ours to do so. Runs at the end of every observation that touched it. */
export function plan(draft: Draft, id: EnvironmentId): void {
  const pool = draft.pool(id);
  if (!draft.cluster.leads || !draft.synced || !draft.reachable) return;
  if (!pool || pool.phase !== 'wanted') return;
  retireOutdated(draft, pool);
  const { idle, starting, blocked } = pool.counts;
  const surplus = idle + starting + blocked - pool.stored.environment.prewarmingPoolSize;
  if (surplus > 0) retireSurplus(draft, pool, surplus);
  else if (surplus < 0) fill(draft, pool, -surplus);
}

function fill(draft: Draft, pool: Pool, missing: number): void {
  const { context } = draft;
  const { environment } = pool.stored;
  if (context.now < pool.retryAt) {
    draft.wake(pool.retryAt);
    return;
  }
  const count = pool.failures > 0 ? 1 : missing;
  for (let made = 0; made < count; made += 1) {
    const runnerId = context.newRunnerId(environment.id);
    const spec = environment.specHash;
    addStarting(draft, { id: runnerId, environmentId: environment.id, spec, seen: undefined });
    draft.effect({ kind: 'register', id: runnerId });
  }
  if (pool.failures === 0) return;
  // A probe: the next one waits its turn, whether or not Nomad tells how this one does.
  poolFailed(draft, environment.id, pool.trouble ?? 'runners do not start', false);
  if (count < missing) draft.wake(draft.pool(environment.id)?.retryAt ?? context.now);
}

/** Those that have not started yet go first, then the youngest. */
function retireSurplus(draft: Draft, pool: Pool, surplus: number): void {
  const age = (runner: Runner): number =>
    runner.phase.name === 'starting' ? Infinity : (currentOf(runner.allocations)?.createIndex ?? Infinity);
  const candidates = draft
    .members(pool.stored.environment.id)
    .filter((runner) => isUnclaimed(runner) && isCurrent(runner, pool.stored))
    .sort((a, b) => age(b) - age(a));
  for (const runner of candidates.slice(0, surplus)) remove(draft, runner, 'retired');
}

/** An old runner that has not started is of no use; an old idle one goes when the new pool is full, or has no room. */
function retireOutdated(draft: Draft, pool: Pool): void {
  const { idle, blocked, outdatedIdle, outdatedStarting } = pool.counts;
  const isIdleRetired = idle >= pool.stored.environment.prewarmingPoolSize || blocked > 0;
  if (outdatedStarting === 0 && !(outdatedIdle > 0 && isIdleRetired)) return;
  for (const runner of draft.members(pool.stored.environment.id)) {
    if (!isUnclaimed(runner) || isCurrent(runner, pool.stored)) continue;
    if (runner.phase.name === 'starting' || isIdleRetired) remove(draft, runner, 'retired');
  }
}

/** Gives up what has been starting, or without an owner, for too long. */
export function endLate(draft: Draft, pool: Pool): void {
  const { now, startTimeoutMs } = draft.context;
  const { id } = pool.stored.environment;
  for (const runner of draft.members(id)) {
    const { phase } = runner;
    endOrphan(draft, runner);
    if (phase.name !== 'starting' && phase.name !== 'adopting') continue;
    if (now - phase.since < startTimeoutMs) {
      draft.wake(phase.since + startTimeoutMs);
      continue;
    }
    if (phase.name === 'adopting') {
      remove(draft, runner, 'allocation-stopped');
      continue;
    }
    if (!draft.cluster.leads) continue;
    const told = phase.blocked ?? `a runner did not start within ${startTimeoutMs / 1000} s`;
    poolFailed(draft, id, told, true);
    remove(draft, runner, 'failed');
  }
}

/**
 * A runner was asked something, and `fault` is what is wrong with its answer, if anything. A claim that was first wins;
 * and of what the environment is now, only a runner of the current specification says anything.
 */
export function applyCheck(draft: Draft, id: RunnerId, fault: string | undefined): void {
  const runner = draft.runner(id);
  const pool = runner && draft.pool(runner.environmentId);
  if (!pool) return;
  const isOfPool = isCurrent(runner, pool.stored);
  if (fault === undefined) {
    if (isOfPool) poolProved(draft, runner.environmentId);
  } else if (runner.phase.name === 'idle') {
    if (isOfPool) poolDoubted(draft, runner.environmentId, fault);
    remove(draft, runner, 'failed');
  }
}

function isUnclaimed(runner: Runner): boolean {
  return runner.phase.name === 'idle' || runner.phase.name === 'starting';
}
