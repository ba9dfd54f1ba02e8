import type { NomadEvaluations } from './api.js';
import { Fields, oneOf } from './decode.js';
import type { Http } from './http.js';
import type { Evaluation, PlacementFailure } from './model.js';

/** `/v1/evaluation`. */
export class Evaluations implements NomadEvaluations {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async get(evaluationId: string, signal?: AbortSignal): Promise<Evaluation | undefined> {
    const path = `/v1/evaluation/${encodeURIComponent(evaluationId)}`;
    const answer = await this.#http.find({ method: 'GET', path, signal }, 'eval not found');
    return answer && decodeEvaluation(answer.body);
  }
}

const STATUSES: readonly Evaluation['status'][] = ['pending', 'complete', 'failed', 'canceled', 'blocked'];

/** One evaluation, from the event stream or a look-up. A status that is not known here is not an end. */
export function decodeEvaluation(value: unknown): Evaluation {
  const evaluation = new Fields(value, 'an evaluation');
  const failures = evaluation.children('FailedTGAllocs') ?? [];
  return {
    id: evaluation.text('ID'),
    jobId: evaluation.textOrEmpty('JobID'),
    status: oneOf(evaluation.text('Status'), STATUSES, 'pending'),
    statusDescription: evaluation.textOrEmpty('StatusDescription'),
    triggeredBy: evaluation.textOrEmpty('TriggeredBy'),
    createIndex: evaluation.number('CreateIndex'),
    modifyIndex: evaluation.number('ModifyIndex'),
    blockedEvaluation: evaluation.textIfAny('BlockedEval'),
    nextEvaluation: evaluation.textIfAny('NextEval'),
    failedGroups: Object.fromEntries(failures.map(([group, failure]) => [group, decodeFailure(failure)])),
  };
}

function decodeFailure(failure: Fields): PlacementFailure {
  return {
    nodesEvaluated: failure.numberOrZero('NodesEvaluated'),
    nodesExhausted: failure.numberOrZero('NodesExhausted'),
    nodesFiltered: failure.numberOrZero('NodesFiltered'),
    exhaustedDimensions: failure.numbers('DimensionExhausted'),
    filteredConstraints: failure.numbers('ConstraintFiltered'),
  };
}
