import { ServiceError } from './errors.js';

/**
 * The life of an object that works in the background.
 *
 *   new ── start ──▶ running ── stop ──▶ stopping ──▶ stopped
 *    └───────────── stop ──────────────────▲
 *
 * Constructors do no I/O and start no timer. After `stop()` no timer, socket, listener or promise of the object is
 * alive.
 */
export interface Lifecycle extends AsyncDisposable {
  readonly state: LifecycleState;
  /** Runs once and resolves when the object is useful; if it fails it leaves nothing behind. */
  start(): Promise<void>;
  /** Idempotent: every caller gets the same promise. Never rejects. */
  stop(): Promise<void>;
}

export type LifecycleState = 'new' | 'running' | 'stopping' | 'stopped';

/** Throws ILLEGAL_STATE unless `state` is `new`: what was stopped is not started again. */
export function assertNew(what: string, state: LifecycleState): void {
  if (state !== 'new') throw new ServiceError('ILLEGAL_STATE', `cannot start ${what} that is ${state}`);
}
