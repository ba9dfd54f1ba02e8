import type { Clock } from '../base/clock.js';

export interface PaceOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** From one begin to the next. */
  readonly everyMs: number;
  /** From the end of a step that failed to the next. */
  readonly retryMs: number;
  readonly step: (signal: AbortSignal) => Promise<void>;
  /** Not called for a step that the signal ended. */
  readonly onFailure: (error: unknown) => void;
}

/** Does a step at once and then again and again, one at a time, until the signal aborts. Never rejects. */
export async function keepPace({
  clock,
  signal,
  everyMs,
  retryMs,
  step,
  onFailure,
}: PaceOptions): Promise<void> {
  while (!signal.aborted) {
    const beganMs = clock.monotonicMs();
    let pauseMs: number;
    try {
      await step(signal);
      pauseMs = Math.max(0, beganMs + everyMs - clock.monotonicMs());
    } catch (error) {
      if (signal.aborted) return; // the end itself, no failure
      onFailure(error);
      pauseMs = retryMs;
    }
    await clock.sleep(pauseMs, signal);
  }
}
