import { hasCode } from '../base/errors.js';
import type { ReplicaId, RunnerId } from '../base/ids.js';
import type { NomadJobs } from '../nomad/api.js';
import { createEndingJob, readRunnerJob } from './job.js';
import type { RunnerJob, TakenFrom } from './observation.js';
import type { RemovalReason, Use } from './state.js';

/** One job that is to be purged. */
export interface Removal {
  readonly id: RunnerId;
  readonly from: TakenFrom;
  readonly reason: RemovalReason;
}

/** Ours alone, so that it can be purged; not there; or another replica's. */
export type Secured =
  | { readonly kind: 'taken' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'kept'; readonly job: RunnerJob };

/** Conflicts in a row after which the attempt counts as failed: each means that somebody else wrote meanwhile. */
const MAX_CONFLICTS = 5;

/**
 * Takes a job by a write under the index that was read, unless somebody has it from whom it may not be taken. After
 * that no replica claims it or takes it over, so it can be purged whenever Nomad allows.
 */
export async function secure(
  jobs: Pick<NomadJobs, 'get' | 'register'>,
  self: ReplicaId,
  { id, from, reason }: Removal,
  signal: AbortSignal,
): Promise<Secured> {
  for (let conflicts = 0; ; conflicts += 1) {
    const job = await jobs.get(id, signal);
    if (!job) return { kind: 'absent' };
    const says = readRunnerJob(job);
    if (says?.used && isTaken(says.used, self, from)) return { kind: 'taken' };
    if (says?.used && !mayTake(says.used, self, from)) return { kind: 'kept', job: says };
    try {
      const enforceIndex = job.JobModifyIndex ?? 0;
      await jobs.register(createEndingJob(job, self, reason), { enforceIndex, signal });
      return { kind: 'taken' };
    } catch (error) {
      if (!hasCode(error, 'NOMAD_CONFLICT') || conflicts >= MAX_CONFLICTS) throw error;
    }
  }
}

/** No client has it any more, and we may purge it as well as whoever took it. */
function isTaken(use: Use, self: ReplicaId, from: TakenFrom): boolean {
  return use.ending !== undefined && (use.owner === self || from === 'anybody');
}

function mayTake(use: Use, self: ReplicaId, from: TakenFrom): boolean {
  if (use.owner === self || from === 'anybody') return true;
  return typeof from === 'object' && use.owner === from.owner;
}
