/**
 * Template job → runner job, and what a runner's job says.
 *
 * A runner's job is a copy of its template. To claim it, the job is sent back as Nomad has it, with nothing changed but
 * the meta of the group `config` (count 0): such a change is made in place and leaves the allocation and its processes
 * alone, while any other could replace them.
 */
import type { ReplicaId, RunnerId } from '../base/ids.js';
import { parseRunnerId, replicaId } from '../base/ids.js';
import { CONFIG_GROUP, DEFAULT_GROUP, groupOf } from '../environments/base-job.js';
import type { StoredEnvironment } from '../environments/store.js';
import { SPEC_META, USED_META } from '../environments/template.js';
import type { JobRow } from '../nomad/model.js';
import type { Meta, WireJob, WireTaskGroup } from '../nomad/wire.js';
import type { RunnerJob } from './observation.js';
import type { RemovalReason, Use } from './state.js';

/** Seconds of inactivity, beside `used`. */
export const TIMEOUT_META = 'timeout';
/** The replica that claimed the runner, beside `used`. */
export const OWNER_META = 'owner';
/** Why the runner was taken, where it was taken only to be purged. */
export const ENDING_META = 'serai_ending';

/** What Nomad adds to a job that it has; a new job does not carry it. */
const SERVER_FIELDS = [
  'Status',
  'StatusDescription',
  'Stable',
  'Stop',
  'SubmitTime',
  'Version',
  'CreateIndex',
  'ModifyIndex',
  'JobModifyIndex',
];

/** The job of a new runner of an environment. What it leaves as it is, it shares with the template. */
export function createRunnerJob(stored: StoredEnvironment, id: RunnerId): WireJob {
  const job: WireJob = {
    ...stored.job,
    ID: id,
    Name: id,
    Meta: { ...stored.job.Meta, [SPEC_META]: stored.environment.specHash },
    TaskGroups: (stored.job.TaskGroups ?? []).map(createGroup),
  };
  for (const field of SERVER_FIELDS) delete job[field];
  return job;
}

function createGroup(group: WireTaskGroup): WireTaskGroup {
  const wanted = group.Name === DEFAULT_GROUP ? { ...group, Count: 1 } : group;
  if (group.Name !== CONFIG_GROUP) return wanted;
  const meta: Meta = { ...group.Meta, [USED_META]: 'false' };
  for (const key of [TIMEOUT_META, OWNER_META, ENDING_META]) delete meta[key];
  return { ...wanted, Meta: meta };
}

/** The job of a runner, claimed; or of one in use, taken over with the time that its client asked for. */
export function createClaimedJob(job: WireJob, timeoutSeconds: number, owner: ReplicaId): WireJob {
  return withConfig(job, {
    [USED_META]: 'true',
    [TIMEOUT_META]: String(timeoutSeconds),
    [OWNER_META]: owner,
  });
}

/**
 * The job of a runner that is taken to be purged, so that nobody claims it meanwhile. It runs no more from here on: Nomad
 * would start a job anew that has ended.
 */
export function createEndingJob(job: WireJob, owner: ReplicaId, reason: RemovalReason): WireJob {
  const taken = withConfig(createClaimedJob(job, 0, owner), { [ENDING_META]: reason });
  const groups = taken.TaskGroups ?? [];
  return {
    ...taken,
    TaskGroups: groups.map((group) => (group.Name === DEFAULT_GROUP ? { ...group, Count: 0 } : group)),
  };
}

function withConfig(job: WireJob, meta: Readonly<Record<string, string>>): WireJob {
  return {
    ...job,
    TaskGroups: (job.TaskGroups ?? []).map((group) =>
      group.Name === CONFIG_GROUP ? { ...group, Meta: { ...group.Meta, ...meta } } : group,
    ),
  };
}

/** What a job says of its runner; undefined for the job of anything else. */
export function readRunnerJob(job: WireJob): RunnerJob | undefined {
  const parsed = parseRunnerId(job.ID);
  const meta = groupOf(job, CONFIG_GROUP)?.Meta;
  if (!parsed || !meta) return undefined;
  return {
    id: parsed.runnerId,
    environmentId: parsed.environmentId,
    spec: job.Meta?.[SPEC_META],
    used: meta[USED_META] === 'true' ? readUse(meta) : undefined,
    writtenAt: job.JobModifyIndex ?? 0,
    stopped: job.Stop === true,
    ended: job.Status === 'dead',
    modifyIndex: job.ModifyIndex ?? 0,
  };
}

/** What the row of a job list says of a runner: not who has it. */
export function readRunnerRow(row: JobRow): RunnerJob | undefined {
  const parsed = parseRunnerId(row.id);
  if (!parsed) return undefined;
  return {
    id: parsed.runnerId,
    environmentId: parsed.environmentId,
    spec: row.meta?.[SPEC_META],
    used: undefined,
    writtenAt: undefined,
    stopped: row.stop,
    ended: row.status === 'dead',
    modifyIndex: row.modifyIndex,
  };
}

function readUse(meta: Readonly<Meta>): Use {
  const owner = meta[OWNER_META];
  return {
    timeoutSeconds: parseTimeout(meta[TIMEOUT_META]),
    owner: owner === undefined || owner === '' ? undefined : replicaId(owner),
    ending: meta[ENDING_META],
  };
}

/** A text that is no number of seconds means that nothing was asked for. */
function parseTimeout(text: string | undefined): number {
  return text !== undefined && /^[0-9]{1,10}$/.test(text) ? Number(text) : 0;
}
