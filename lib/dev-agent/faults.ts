import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';

/**
 * Misbehaviour on request, to rehearse what a real cluster does at its worst. Each fault is a method for tests in the
 * same process and a route for everybody else (http/fault-routes.ts).
 */
export interface RouteRule {
  /** Beginning of the path, such as `/v1/jobs`. */
  readonly prefix: string;
  /** Answer this instead, undefined to let the request through. */
  readonly status: number | undefined;
  readonly delayMs: number;
  /** Requests that are still to be treated so; Infinity for all. */
  readonly times: number;
}

export interface FaultTargets {
  readonly cutStreams: () => void;
  readonly loseEvents: (count: number) => void;
  readonly dropExecs: (allocationId: string | undefined) => number;
  readonly restartTask: (allocationId: string, task: string | undefined) => Promise<boolean>;
  readonly killTask: (
    allocationId: string,
    task: string | undefined,
    options: { oomKilled: boolean },
  ) => Promise<boolean>;
  readonly closeListener: () => Promise<void>;
  readonly openListener: () => Promise<void>;
  readonly wipe: () => Promise<void>;
}

export interface FaultsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly targets: FaultTargets;
}

/** A listener that cannot be opened again is tried again after this. */
const REOPEN_MS = 100;

/** What Nomad says with a status. */
const TEXTS: Readonly<Record<number, string>> = {
  403: 'Permission denied',
  429: 'Your IP is issuing too many concurrent connections, please rate limit your calls',
  500: 'No cluster leader',
};

export class Faults {
  readonly #deps: FaultsDeps;
  readonly #ended = new AbortController();
  #rules: { prefix: string; status: number | undefined; delayMs: number; times: number }[] = [];
  #outage: Promise<void> = Promise.resolve();

  constructor(deps: FaultsDeps) {
    this.#deps = deps;
  }

  /** Breaks every event stream off. */
  cutEventStreams(): void {
    this.#deps.targets.cutStreams();
  }

  /** The next `count` lines of the event stream are never sent to anybody. */
  loseEvents(count: number): void {
    this.#deps.targets.loseEvents(count);
  }

  /** Requests whose path begins with `prefix` are answered `delayMs` later. */
  delay(prefix: string, delayMs: number, times = Infinity): void {
    this.#rules.push({ prefix, delayMs, status: undefined, times });
  }

  /** The next `times` requests whose path begins with `prefix` are answered with `status`, such as 500 or 429. */
  answer(prefix: string, status: number, times = 1): void {
    this.#rules.push({ prefix, delayMs: 0, status, times });
  }

  /** Delays and answers that are in force. */
  get rules(): readonly RouteRule[] {
    return this.#rules;
  }

  /** Lifts every delay and answer. */
  clear(): void {
    this.#rules = [];
  }

  /** Restarts a running task, or all of the allocation, as an operator does. False where none runs. */
  restartTask(allocationId: string, task?: string): Promise<boolean> {
    return this.#deps.targets.restartTask(allocationId, task);
  }

  /** Lets a task's main process die, as a crashed container does. False where none runs. */
  killTask(allocationId: string, task?: string, options = { oomKilled: false }): Promise<boolean> {
    return this.#deps.targets.killTask(allocationId, task, options);
  }

  /** Breaks exec sockets off (1006), of one allocation or all; their processes live on. Returns how many. */
  dropExecs(allocationId?: string): number {
    return this.#deps.targets.dropExecs(allocationId);
  }

  /**
   * Breaks every connection off and refuses new ones for a time; state and processes stay. Resolves when the agent
   * answers again.
   */
  outage(ms: number): Promise<void> {
    this.#outage = this.#outage.then(() => this.#beGone(ms));
    return this.#outage;
  }

  /** Ends every task and forgets everything, as an agent does that lost its disk. */
  wipe(): Promise<void> {
    return this.#deps.targets.wipe();
  }

  /** What is to be done with a request: waits for its delay and returns the answer that it gets instead of its own. */
  async meet(path: string): Promise<{ status: number; text: string } | undefined> {
    const met = this.#rules.filter(({ prefix }) => path.startsWith(prefix));
    for (const rule of met) rule.times -= 1;
    this.#rules = this.#rules.filter(({ times }) => times > 0);
    const delayMs = met.reduce((sum, rule) => sum + rule.delayMs, 0);
    if (delayMs > 0) await this.#deps.clock.sleep(delayMs, this.#ended.signal);
    const status = met.find((rule) => rule.status !== undefined)?.status;
    return status === undefined ? undefined : { status, text: TEXTS[status] ?? '' };
  }

  /** Ends what is under way; the agent is being stopped. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#outage;
  }

  async #beGone(ms: number): Promise<void> {
    const { clock, log, targets } = this.#deps;
    const { signal } = this.#ended;
    if (signal.aborted) return;
    log.info('outage begins', { ms });
    await targets.closeListener();
    await clock.sleep(ms, signal);
    while (!signal.aborted) {
      try {
        await targets.openListener();
        break;
      } catch (error) {
        log.warn('cannot listen again yet', { error });
        await clock.sleep(REOPEN_MS, signal);
      }
    }
    log.info('outage ends');
  }
}
