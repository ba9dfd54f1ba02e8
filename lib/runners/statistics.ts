import type { EnvironmentStatistics } from '../protocol/http.js';
import type { Pool, State } from './state.js';
import type { UnfitEnvironments } from './unfit.js';

/** Why a pool is not full, as a sentence; undefined where no trouble is known. */
export function describeReason(state: State, pool: Pool): string | undefined {
  if (!state.reachable) return 'Nomad cannot be reached';
  const { environment } = pool.stored;
  const isFull = pool.counts.idle >= environment.prewarmingPoolSize;
  if (isFull) return pool.doubtUntil === undefined ? undefined : pool.trouble;
  if (pool.counts.blocked === 0) return pool.trouble;
  for (const { phase } of state.members.get(environment.id)?.values() ?? []) {
    if (phase.name === 'starting' && phase.blocked !== undefined) return phase.blocked;
  }
  return pool.trouble;
}

/** How each environment is doing, in order of id. */
export function createStatistics(state: State, unfit: UnfitEnvironments): EnvironmentStatistics[] {
  return [...state.pools.values()]
    .filter((pool) => pool.phase === 'wanted')
    .map((pool) => createEntry(state, pool, unfit.reasonOf(pool.stored.environment)))
    .sort((a, b) => a.id - b.id);
}

function createEntry(state: State, pool: Pool, unfitReason: string | undefined): EnvironmentStatistics {
  const { counts, failedStarts } = pool;
  const { id, prewarmingPoolSize } = pool.stored.environment;
  const reason = unfitReason ?? describeReason(state, pool);
  const isFull = counts.idle >= prewarmingPoolSize;
  return {
    id,
    prewarmingPoolSize,
    idleRunners: counts.idle,
    usedRunners: counts.used,
    pendingRunners: counts.starting + counts.blocked,
    failedRunners: failedStarts,
    state: reason !== undefined ? 'unhealthy' : isFull ? 'ready' : 'filling',
    ...(reason === undefined ? {} : { reason }),
  };
}
