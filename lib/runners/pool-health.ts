/**
 * How a pool fares: failures make it wait before it registers again, a start that succeeds ends that.
 *
 * A runner that is idle and answers wrongly puts the pool in doubt: others of its kind start as well as it did, so
 * their starts prove nothing. What ends the doubt is a runner that passed its check, or a minute without a wrong answer,
 * since not every runner is checked.
 */
import type { EnvironmentId } from '../base/ids.js';
import type { Draft } from './draft.js';
import type { Pool } from './state.js';
import { HEALTHY } from './state.js';

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Longer than the longest wait, the start and the check of the runner that is tried next. */
const DOUBT_MS = 60_000;

/** A start or a registration failed. Failures while the pool waits already do not make it wait longer. */
export function poolFailed(draft: Draft, id: EnvironmentId, trouble: string, isStart: boolean): void {
  const pool = draft.pool(id);
  if (!pool) return;
  const { now } = draft.context;
  const failedStarts = pool.failedStarts + (isStart ? 1 : 0);
  if (now < pool.retryAt) {
    draft.setPool(id, { failedStarts, trouble });
    return;
  }
  const fullMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(pool.failures, 10));
  const retryAt = now + fullMs / 2 + (fullMs / 2) * draft.context.random();
  draft.setPool(id, { failedStarts, trouble, failures: pool.failures + 1, retryAt });
}

/** A runner became idle: the environment can start runners. */
export function poolStarted(draft: Draft, id: EnvironmentId): void {
  const pool = draft.pool(id);
  if (pool && pool.doubtUntil === undefined && !isHealthy(pool)) draft.setPool(id, HEALTHY);
}

/** True where `HEALTHY` would change nothing, as with nearly all of thousands that start. */
function isHealthy({ failures, failedStarts, retryAt, trouble }: Pool): boolean {
  return failures === 0 && failedStarts === 0 && retryAt === 0 && trouble === undefined;
}

/** An idle runner answers wrongly: as bad as a failed start, and no start is trusted until the doubt ends. */
export function poolDoubted(draft: Draft, id: EnvironmentId, trouble: string): void {
  poolFailed(draft, id, trouble, true);
  const doubtUntil = draft.context.now + DOUBT_MS;
  draft.setPool(id, { doubtUntil });
  draft.wake(doubtUntil);
}

/** A runner answers as it has to: ends a doubt. It says nothing of starts that fail. */
export function poolProved(draft: Draft, id: EnvironmentId): void {
  if (draft.pool(id)?.doubtUntil !== undefined) draft.setPool(id, HEALTHY);
}

/** Time passed: ends a doubt that nothing renewed. Runners that are idle are then as good as any. */
export function easeDoubt(draft: Draft, id: EnvironmentId): void {
  const pool = draft.pool(id);
  if (pool?.doubtUntil === undefined) return;
  if (draft.context.now < pool.doubtUntil) draft.wake(pool.doubtUntil);
  else draft.setPool(id, pool.counts.idle > 0 ? HEALTHY : { doubtUntil: undefined });
}
