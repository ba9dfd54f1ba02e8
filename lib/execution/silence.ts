/**
 * Tells a silent Nomad from a runner that takes its time.
 *
 * What a client waits for may be silent for long, and nobody can see why: a frozen Nomad closes no socket. So after two
 * seconds of silence Nomad is asked for a sign of life. While it gives one the wait goes on; where it gives none the
 * client is told so, early enough for an answer within 5 s.
 */
import type { Clock, Timer } from '../base/clock.js';
import type { Pulse } from './pulse.js';

/** Silence after which Nomad is asked. */
const QUIET_MS = 2_000;

export interface SilenceWatchOptions {
  readonly pulse: Pulse;
  readonly clock: Clock;
  /** Called at most once: nothing was heard, and Nomad does not answer. */
  readonly onSilent: () => void;
}

/** Watches from its construction on, until it is stopped or has called back. */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  #heardMs: number;
  #timer: Timer | undefined;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
    this.#heardMs = options.clock.monotonicMs();
    this.#arm();
  }

  /** Something moved. */
  heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  get #quietMs(): number {
    return this.#options.clock.monotonicMs() - this.#heardMs;
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#timer = clock.setTimer(Math.max(0, QUIET_MS - this.#quietMs), () => void this.#look(this.#timer));
  }

  async #look(timer: Timer | undefined): Promise<void> {
    if (this.#quietMs >= QUIET_MS) {
      const answers = await this.#options.pulse.answers();
      if (this.#timer !== timer) return; // stopped meanwhile
      if (!answers && this.#quietMs >= QUIET_MS) {
        this.#timer = undefined;
        this.#options.onSilent();
        return;
      }
      if (answers) this.heard();
    }
    this.#arm();
  }
}
