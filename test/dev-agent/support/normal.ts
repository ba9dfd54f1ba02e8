/**
 * Answers of two servers made comparable: ids become `<id>`, indexes and times `<n>`, names of nodes `<node>`; and what
 * the agent leaves out on purpose is left out of both.
 */
const LEFT_OUT = new Set([
  // Of the scheduler's inner life, and of what the agent does not have: signed identities, classes of nodes.
  'AllocationTime',
  'ClassEligibility',
  'ScoreMetaData',
  'SigningKeyID',
]);
const NUMBERS =
  /Index$|Time$|^(?:EvalCreateIndex|Index|SnapshotIndex|LastAllocUpdateIndex|Value|StatusUpdatedAt)$/;
const TIMES = /^(?:StartedAt|FinishedAt|LastRestart|UpdatedAt|ForceDeadline)$/;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export function normal(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((entry) => normal(entry));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([name]) => !LEFT_OUT.has(name));
    return Object.fromEntries(entries.map(([name, entry]) => [normal(name), normal(entry, name)]));
  }
  if (typeof value === 'number') return NUMBERS.test(key) && value > 0 ? '<n>' : value;
  if (typeof value !== 'string') return value;
  if (TIMES.test(key)) return '<time>';
  if (key === 'NodeName') return '<node>';
  return value
    .replace(UUID, '<id>')
    .replace(/(index: )\d+/, '$1<n>')
    .replace(/(index )[1-9]\d*/, '$1<n>');
}
