import type { Clock } from './clock.js';
import type { ErrorCode } from './errors.js';
import { ServiceError } from './errors.js';

/**
 * Abort signals whose reason is always a ServiceError.
 *
 * Three scopes are used throughout, always by these names: `runnerSignal`, `requestSignal`, `executionSignal`. They
 * are combined with `AbortSignal.any`. An abort is no failure and is not logged as one.
 */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Disarms the deadline; the signal then never aborts. */
  clear(): void;
}

/**
 * A signal that aborts after `delayMs` with our own error; `AbortSignal.timeout` would give a DOMException and cannot
 * be cleared.
 */
export function deadline(clock: Clock, delayMs: number, code: ErrorCode, message: string): Deadline {
  const controller = new AbortController();
  const timer = clock.setTimer(delayMs, () => controller.abort(new ServiceError(code, message)));
  const clear = (): void => timer.cancel();
  return { signal: controller.signal, clear, [Symbol.dispose]: clear };
}

/** The reason of an aborted signal as a ServiceError. */
export function reasonOf(signal: AbortSignal): ServiceError {
  const reason: unknown = signal.reason;
  return reason instanceof ServiceError
    ? reason
    : new ServiceError('STOPPED', 'the operation was aborted', { cause: reason });
}

/** Throws the reason of a signal that is already aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw reasonOf(signal);
}

/**
 * Settles as `promise` does, or rejects with the signal's reason as soon as that aborts. The work behind `promise` goes
 * on unless it watches the signal itself; its late rejection is swallowed, since nobody waits for it any more.
 */
export function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
