/**
 * How a pool fares: failures make it wait before it registers again, a start that succeeds ends that.
 */
import type { EnvironmentId } from '../base/ids.js';
import type { Draft } from './draft.js';

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;

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
  draft.setPool(id, { failures: 0, failedStarts: 0, retryAt: 0, trouble: undefined });
}
