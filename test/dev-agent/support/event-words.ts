import type { EventJson, LineJson } from './agent-json.js';

/** One event in a few words, without ids. */
export function word({ Topic, Type, Payload: { Job, Evaluation, Allocation, Node } }: EventJson): string {
  const about =
    Job?.Status ??
    (Evaluation && `${Evaluation.Status} ${Evaluation.TriggeredBy}`) ??
    (Allocation && describeAllocation(Allocation)) ??
    (Node && `${Node.Status} ${Node.SchedulingEligibility} drain=${Node.Drain}`);
  return `${Topic} ${Type} ${about}`;
}

function describeAllocation(allocation: NonNullable<EventJson['Payload']['Allocation']>): string {
  const { ClientStatus, DesiredStatus, DesiredDescription = '', TaskStates } = allocation;
  const tasks = Object.values(TaskStates ?? {}).map(
    ({ State, Failed, Restarts, LastRestart, Events }) =>
      `${State}${Failed ? ' failed' : ''} restarts=${Restarts}${LastRestart ? ' restarted' : ''} ` +
      Events.map(({ Type }) => Type).join(','),
  );
  return [`${ClientStatus}/${DesiredStatus}`, DesiredDescription, ...tasks].filter(Boolean).join(' ');
}

/** The job that an event is about. */
export function jobOf({ Payload: { Job, Evaluation, Allocation } }: EventJson): string | undefined {
  return Job?.ID ?? Evaluation?.JobID ?? Allocation?.JobID;
}

/** What only shows when a start or an end takes long enough for a report in between. */
const BETWEEN =
  /^Allocation AllocationUpdated (pending\/run pending restarts=0 Received(,Task Setup)?|running\/stop .*,Killing)$/;

/**
 * The lines of one job: the words of each line that is not a client's report, together; of the reports, which a server
 * gathers as they come, each event as a line of its own.
 */
export function linesOf(lines: readonly LineJson[], jobId: string): string[] {
  return lines.flatMap(({ Events = [] }) => {
    const own = Events.filter((event) => jobOf(event) === jobId && event.Topic !== 'Node');
    const words = own.map(word).filter((text) => !BETWEEN.test(text));
    const isReport = own.some(({ Topic, Type }) => Topic === 'Allocation' && Type === 'AllocationUpdated');
    if (isReport) return words;
    return words.length > 0 ? [words.join(' + ')] : [];
  });
}

/** Reports of two allocations may come in either order. */
export function inAnyOrder(lines: readonly string[]): string[] {
  const isReport = (line: string): boolean => line.startsWith('Allocation AllocationUpdated');
  const sorted: string[] = [];
  for (let at = 0; at < lines.length;) {
    let end = at + 1;
    while (end < lines.length && isReport(lines[at] ?? '') && isReport(lines[end] ?? '')) end += 1;
    sorted.push(...lines.slice(at, end).sort());
    at = end;
  }
  return sorted;
}
