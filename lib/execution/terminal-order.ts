import type { Clock, Timer } from '../base/clock.js';
import type { ExecSession } from '../nomad/api.js';
import { formatAgain } from '../shell/request.js';
import type { Aftermath } from './session.js';
import { SETTLE_MS } from './session.js';

/**
 * Whether the terminal of a session is in order for the next command.
 *
 *   begin ──▶ a command runs ──▶ told by the loop ──┬── nothing was typed ──▶ what was told
 *                                                   └── typed or resized ──▶ asked again, behind all of that ──▶ told
 *
 * The loop restores the terminal by itself after each command. What was typed or resized may still be on its way to the
 * terminal by then, and would meet the next command; so a line is typed behind it, and the loop is asked to throw
 * everything away up to that line and to restore the terminal once more.
 */
export class TerminalOrder {
  readonly #clock: Clock;
  readonly #control: Pick<ExecSession, 'write'>;
  readonly #terminal: Pick<ExecSession, 'write'>;
  #token = '';
  #isTouched = false;
  /** What the loop said since it was last asked. */
  #told: Aftermath | undefined;
  #isAnswered = false;
  #waiting: ((told: Aftermath) => void) | undefined;

  constructor(clock: Clock, control: Pick<ExecSession, 'write'>, terminal: Pick<ExecSession, 'write'>) {
    this.#clock = clock;
    this.#control = control;
    this.#terminal = terminal;
  }

  /** A command with this token is asked for. */
  begin(token: string): void {
    this.#token = token;
    this.#told = undefined;
    this.#isAnswered = false;
  }

  /** Something was sent to the terminal. */
  touch(): void {
    this.#isTouched = true;
  }

  /** The loop, or the end of an exec, says how things stand. */
  told(verdict: Aftermath): void {
    this.#told = verdict;
    this.#waiting?.(verdict);
  }

  /** How things stand after a command; asked again, after everything was restored once more. */
  async restored(): Promise<Aftermath> {
    if (this.#isAnswered) this.#askAgain();
    let verdict = await this.#answer();
    if (verdict !== 'spent' && this.#isTouched) {
      this.#askAgain();
      verdict = (await this.#answer()) === 'spent' ? 'spent' : verdict;
    }
    this.#isAnswered = true;
    return verdict;
  }

  #askAgain(): void {
    const typed = this.#isTouched ? this.#token : '';
    this.#isTouched = false;
    this.#told = undefined;
    if (typed !== '') void this.#terminal.write(Buffer.from(`${typed}\n`));
    void this.#control.write(formatAgain(this.#token, typed));
  }

  #answer(): Promise<Aftermath> {
    if (this.#told) return Promise.resolve(this.#told);
    return new Promise((resolve) => {
      const timer: Timer = this.#clock.setTimer(SETTLE_MS, () => this.#waiting?.('spent'));
      this.#waiting = (verdict) => {
        this.#waiting = undefined;
        timer.cancel();
        resolve(verdict);
      };
    });
  }
}
