import { ServiceError } from '../base/errors.js';
import type { Evaluation, PlacementFailure } from './model.js';

/**
 * Why a job has no place, in a sentence for people: the groups without a place, what their nodes lack, and where the job
 * waits. For example: `job 7-big cannot be placed: group default-group: 1 of 1 nodes has no cpu left; evaluation … waits
 * for room`.
 */
export function describePlacementFailure(evaluation: Evaluation): string {
  const { jobId, statusDescription, failedGroups, blockedEvaluation } = evaluation;
  const groups = Object.entries(failedGroups).map(([name, failure]) => `group ${name}: ${whyNot(failure)}`);
  const reasons = groups.length > 0 ? groups : [statusDescription || evaluation.status];
  const waiting = blockedEvaluation === undefined ? [] : [`evaluation ${blockedEvaluation} waits for room`];
  return `job ${jobId} cannot be placed: ${[...reasons, ...waiting].join('; ')}`;
}

/** PLACEMENT_FAILED with that sentence; the details hold what it was made from. */
export function placementError(evaluation: Evaluation): ServiceError {
  const { id, jobId, status, failedGroups, blockedEvaluation } = evaluation;
  return new ServiceError('PLACEMENT_FAILED', describePlacementFailure(evaluation), {
    details: { evaluationId: id, jobId, status, failedGroups, blockedEvaluation },
  });
}

function whyNot(failure: PlacementFailure): string {
  const { nodesEvaluated: all, nodesExhausted, nodesFiltered } = failure;
  if (all === 0) return 'there is no node to look at';
  const exhausted = sorted(failure.exhaustedDimensions).map(
    ([dimension, nodes]) => `${count(nodes, all)} no ${dimension} left`,
  );
  const filtered = sorted(failure.filteredConstraints).map(
    ([constraint, nodes]) => `${count(nodes, all)} been ruled out by "${constraint}"`,
  );
  if (nodesExhausted > 0 && exhausted.length === 0)
    exhausted.push(`${count(nodesExhausted, all)} no room left`);
  if (nodesFiltered > 0 && filtered.length === 0)
    filtered.push(`${count(nodesFiltered, all)} been ruled out`);
  const reasons = [...exhausted, ...filtered];
  return reasons.length > 0 ? reasons.join(', ') : `none of ${all} nodes can take it`;
}

function count(nodes: number, all: number): string {
  return `${nodes} of ${all} nodes ${nodes === 1 ? 'has' : 'have'}`;
}

/** By name, so that the same failure always reads the same. */
function sorted(counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1));
}
