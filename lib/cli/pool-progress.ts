import type { Clock } from '../base/clock.js';
import type { EnvironmentStatistics } from '../protocol/http.js';
import type { ApiClient } from './api-client.js';
import type { Talk } from './talk.js';

export interface PoolWait {
  readonly api: Pick<ApiClient, 'statistics'>;
  /** Environments to wait for. */
  readonly ids: ReadonlySet<number>;
  readonly clock: Clock;
  readonly talk: Talk;
  readonly signal: AbortSignal;
}

const POLL_MS = 100;
/**
 * Without any change for this long, waiting on is no use: what is missing is said, and the start goes on. An image may be
 * on its way for a while; a runner that cannot be placed is not.
 */
const STUCK_MS = 60_000;
const STUCK_WITH_REASON_MS = 10_000;

/** Shows how the pools fill until they are full. Resolves with false where they stopped filling before that. */
export async function waitForPools({ api, ids, clock, talk, signal }: PoolWait): Promise<boolean> {
  let shown = '';
  let changedMs = clock.monotonicMs();
  while (!signal.aborted) {
    const pools = (await api.statistics()).filter(({ id }) => ids.has(id));
    const text = describePools(pools);
    if (text !== shown) changedMs = clock.monotonicMs();
    shown = text;
    talk.progress('pool', text);
    const short = pools.filter(isShort);
    if (short.length === 0 && pools.length === ids.size) return true;
    const limitMs = short.every(({ reason }) => reason !== undefined) ? STUCK_WITH_REASON_MS : STUCK_MS;
    if (clock.monotonicMs() - changedMs > limitMs) {
      for (const { id, reason } of short)
        talk.say('pool', `${id} is not full: ${reason ?? 'no reason is known'}`);
      return false;
    }
    await clock.sleep(POLL_MS, signal);
  }
  return false;
}

function isShort({ idleRunners, prewarmingPoolSize }: EnvironmentStatistics): boolean {
  return idleRunners < prewarmingPoolSize;
}

function describePools(pools: readonly EnvironmentStatistics[]): string {
  const sum = (of: (pool: EnvironmentStatistics) => number): number =>
    pools.reduce((total, pool) => total + of(pool), 0);
  const idle = sum((pool) => Math.min(pool.idleRunners, pool.prewarmingPoolSize));
  const reason = pools.find((pool) => isShort(pool) && pool.reason !== undefined)?.reason;
  return `${idle} of ${sum((pool) => pool.prewarmingPoolSize)} runners idle${reason === undefined ? '' : ` (${reason})`}`;
}
