import type { Clock, Timer } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';

/** So that a client has its 503 within 5 s. */
const LIMIT_MS = 4000;

/** How long the beginning of an answer is waited for. Armed from the start. */
export class AnswerLimit implements Disposable {
  readonly #clock: Clock;
  readonly #message: string;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;

  constructor(clock: Clock, message: string) {
    this.#clock = clock;
    this.#message = message;
    this.arm();
  }

  /** Aborts, with OWNER_UNREACHABLE, when the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Gives the whole time from now on. */
  arm(): void {
    this.clear();
    this.#timer = this.#clock.setTimer(LIMIT_MS, () =>
      this.#controller.abort(new ServiceError('OWNER_UNREACHABLE', `${this.#message}; try again`)),
    );
  }

  /** Gives any time. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
