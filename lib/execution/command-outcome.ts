import type { Clock, Timer } from '../base/clock.js';
import type { FramedStream } from './framed-stream.js';
import type { CommandEnd } from './session.js';

/** How long an end marker may be missing, counted from the last output of its stream. */
const MARKER_GRACE_MS = 1000;

/**
 * Settles how a command ended, exactly once, from signs that come over several sockets in any order: the exit code, the
 * end marker of each stream, a refusal, the end of an exec.
 *
 * An exit code counts once every stream has its end marker, so that all output is there. A stream that stays silent
 * without one (Ctrl-S stops a terminal) does not hold the end back for longer than the grace; time during which
 * nobody reads does not count. An exec that ends after the exit code is known takes nothing away from it.
 */
export class CommandOutcome {
  readonly end: Promise<CommandEnd>;
  readonly #clock: Clock;
  readonly #streams: readonly FramedStream[];
  #resolve: (end: CommandEnd) => void = () => undefined;
  #exitCode: number | undefined;
  #isRetracted = false;
  #settled = false;
  #paused = false;
  #grace: Timer | undefined;

  constructor(clock: Clock, streams: readonly FramedStream[]) {
    this.#clock = clock;
    this.#streams = streams;
    this.end = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get settled(): boolean {
    return this.#settled;
  }

  exited(exitCode: number): void {
    if (this.#isRetracted) {
      this.#isRetracted = false;
      return;
    }
    this.#exitCode ??= exitCode;
    this.progress();
  }

  /** One exit code is not the command's: that which was told last, or the next one. */
  retractExit(): void {
    this.#isRetracted = this.#exitCode === undefined;
    this.#exitCode = undefined;
    this.#grace?.cancel();
  }

  /** To be called after every chunk of a stream. */
  progress(): void {
    if (this.#exitCode === undefined || this.#settled) return;
    this.#grace?.cancel();
    if (this.#streams.every((stream) => stream.ended)) {
      this.settle({ kind: 'exited', exitCode: this.#exitCode });
    } else if (!this.#paused) {
      this.#waitForMarkers(MARKER_GRACE_MS);
    }
  }

  /**
   * In two steps: a process that was stopped for a while finds its timers due before it reads what waits on its sockets,
   * and that may be the output.
   */
  #waitForMarkers(graceMs: number): void {
    this.#grace = this.#clock.setTimer(graceMs / 2, () => {
      this.#grace = this.#clock.setTimer(graceMs / 2, () => this.cutOff());
    });
  }

  pause(): void {
    this.#paused = true;
    this.#grace?.cancel();
  }

  resume(): void {
    this.#paused = false;
    this.progress();
  }

  /** No more output comes. Returns false where the exit code is not known, hence the command is lost. */
  cutOff(): boolean {
    if (this.#exitCode === undefined) return false;
    this.settle({ kind: 'exited', exitCode: this.#exitCode });
    return true;
  }

  settle(end: CommandEnd): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#grace?.cancel();
    this.#resolve(end);
  }
}
