/**
 * Time, injected: tests stage races and deadlines with a clock of their own and never sleep.
 *
 * `monotonicMs` is for measuring; wall-clock time is for logs only, and is never compared with a time that another
 * machine wrote.
 */
export interface Timer {
  /** After this the callback does not run. May be called more than once. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonicMs(): number;
  /** Milliseconds since 1970, for people. */
  wallMs(): number;
  /** Runs `callback` once after `delayMs`. */
  setTimer(delayMs: number, callback: () => void): Timer;
  /** Resolves after `delayMs`, or early, without rejecting, when `signal` aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Node's longest timer; a longer delay would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Timing that every clock shares: `sleep` in terms of `setTimer`. */
export function sleepOn(
  clock: Pick<Clock, 'setTimer'>,
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(delayMs, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(delayMs, MAX_DELAY_MS));
    return { cancel: () => clearTimeout(handle) };
  },
  sleep: (delayMs, signal) => sleepOn(systemClock, delayMs, signal),
};
