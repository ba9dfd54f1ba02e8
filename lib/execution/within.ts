import type { Clock } from '../base/clock.js';

/** Resolves with true when `work` settles within `limitMs`, else with false; leaves no timer behind. */
export function settlesWithin(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(limitMs, () => resolve(false));
    const settled = (): void => {
      timer.cancel();
      resolve(true);
    };
    work.then(settled, settled);
  });
}
