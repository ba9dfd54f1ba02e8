import { deadline, reasonOf } from '../base/abort.js';
import { Backoff } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { errorSpec, hasCode, messageOf, ServiceError } from '../base/errors.js';
import type { Randomness } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { NomadEvaluations } from './api.js';
import type { Evaluation } from './model.js';
import { placementError } from './placement.js';

export interface EvaluationMonitorDeps {
  readonly evaluations: Pick<NomadEvaluations, 'get'>;
  readonly clock: Clock;
  readonly randomness: Pick<Randomness, 'random'>;
  readonly log: Logger;
}

export interface EvaluationWaitOptions {
  /** Default 60,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** How long the stream has the first word before Nomad is asked, and the longest pause between two questions. */
const POLL_MIN_MS = 200;
const POLL_MAX_MS = 5_000;
const TIMEOUT_MS = 60_000;
/** Ends that came before anybody waited for them. */
const REMEMBERED = 1_000;

/**
 * Waits for evaluations to end, by whichever tells first: the events that the follower of the stream hands to
 * `observe`, or asking.
 *
 * An evaluation may end before its id is known to whoever registered the job, may be announced several times, or never:
 * so ends are remembered for a while, each wait settles once, and asking goes on with a growing pause up to a limit.
 */
export class EvaluationMonitor {
  readonly #deps: EvaluationMonitorDeps;
  readonly #waiting = new Map<string, Set<(evaluation: Evaluation) => void>>();
  readonly #ended = new Map<string, Evaluation>();

  constructor(deps: EvaluationMonitorDeps) {
    this.#deps = deps;
  }

  /** Takes note of an evaluation, from the event stream or anywhere else. Repetitions and unknown ones do no harm. */
  observe(evaluation: Evaluation): void {
    if (!isEnd(evaluation)) return;
    this.#ended.delete(evaluation.id);
    this.#ended.set(evaluation.id, evaluation);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > REMEMBERED && oldest !== undefined) this.#ended.delete(oldest);
    for (const tell of this.#waiting.get(evaluation.id) ?? []) tell(evaluation);
  }

  /**
   * Resolves with the evaluation that placed everything. A failed one is followed to the next that Nomad names.
   *
   * Rejects with PLACEMENT_FAILED where something found no place, or where Nomad gave up or called it off; with
   * NOMAD_OVERLOADED, or with the failure of the last question, at the time limit; with the reason of `signal`; or with
   * a failure that asking again does not mend.
   */
  async wait(evaluationId: string, { timeoutMs = TIMEOUT_MS, signal }: EvaluationWaitOptions = {}) {
    const text = `evaluation ${evaluationId} did not end within ${timeoutMs / 1000} s`;
    using limit = deadline(this.#deps.clock, timeoutMs, 'NOMAD_OVERLOADED', text);
    const waitSignal = signal ? AbortSignal.any([signal, limit.signal]) : limit.signal;
    let evaluation = await this.#end(evaluationId, waitSignal);
    while (evaluation.status === 'failed' && evaluation.nextEvaluation !== undefined) {
      evaluation = await this.#end(evaluation.nextEvaluation, waitSignal);
    }
    if (evaluation.status === 'complete' && Object.keys(evaluation.failedGroups).length === 0)
      return evaluation;
    throw placementError(evaluation);
  }

  async #end(id: string, signal: AbortSignal): Promise<Evaluation> {
    const known = this.#ended.get(id);
    if (known) return known;
    const polling = new AbortController();
    const watchers = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, watchers);
    let tell: (evaluation: Evaluation) => void = () => undefined;
    const told = new Promise<Evaluation>((resolve) => {
      tell = resolve;
    });
    watchers.add(tell);
    try {
      return await Promise.race([told, this.#ask(id, AbortSignal.any([signal, polling.signal]))]);
    } finally {
      watchers.delete(tell);
      if (watchers.size === 0) this.#waiting.delete(id);
      polling.abort(new ServiceError('STOPPED', 'the evaluation ended'));
    }
  }

  /** Asks until the evaluation has ended. At the time limit the last failure says more than the limit itself. */
  async #ask(id: string, signal: AbortSignal): Promise<Evaluation> {
    const { evaluations, clock, randomness, log } = this.#deps;
    const random = (): number => randomness.random();
    const backoff = new Backoff({ minMs: POLL_MIN_MS, maxMs: POLL_MAX_MS, random });
    let failure: ServiceError | undefined;
    for (;;) {
      await clock.sleep(backoff.nextMs(), signal);
      if (signal.aborted) {
        const reason = reasonOf(signal);
        throw failure && hasCode(reason, 'NOMAD_OVERLOADED') ? failure : reason;
      }
      try {
        const evaluation = await evaluations.get(id, signal);
        failure = undefined;
        if (evaluation && isEnd(evaluation)) {
          this.observe(evaluation);
          return evaluation;
        }
      } catch (error) {
        if (signal.aborted) continue; // the pause is over at once, and the reason is thrown there
        if (!isPassing(error)) throw error;
        failure = error;
        log.debug('an evaluation could not be asked for', { evaluationId: id, error: messageOf(error) });
      }
    }
  }
}

function isEnd({ status }: Evaluation): boolean {
  return status === 'complete' || status === 'failed' || status === 'canceled';
}

/** Failures that asking again may mend. */
function isPassing(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code !== 'STOPPED' && errorSpec(error.code).retryable;
}
