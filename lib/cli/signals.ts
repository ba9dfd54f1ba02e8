import type { Clock } from '../base/clock.js';
import { systemClock } from '../base/clock.js';
import type { SignalSource } from './io.js';

/** One Ctrl-C reaches a program under npm twice, from the terminal and from npm; two of a person are further apart. */
const SAME_MS = 300;

export interface Signals {
  /** Resolves at the first SIGTERM or SIGINT. */
  readonly signalled: Promise<void>;
  /** After this a signal ends the process, as it does by default. */
  readonly stopListening: () => void;
}

/** Listens for SIGTERM and SIGINT; `onSecond` is called when another one comes after the first. */
export function onSignals(signals: SignalSource, onSecond: () => void, clock: Clock = systemClock): Signals {
  let firstMs: number | undefined;
  let resolve: () => void = () => undefined;
  const signalled = new Promise<void>((done) => (resolve = done));
  const listener = (): void => {
    if (firstMs === undefined) {
      firstMs = clock.monotonicMs();
      resolve();
    } else if (clock.monotonicMs() - firstMs > SAME_MS) {
      onSecond();
    }
  };
  signals.on('SIGTERM', listener);
  signals.on('SIGINT', listener);
  return {
    signalled,
    stopListening: () => {
      signals.off('SIGTERM', listener);
      signals.off('SIGINT', listener);
    },
  };
}
