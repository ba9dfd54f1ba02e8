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
    const judgement = judge(says?.used, self, from);
    if (judgement === 'taken') return { kind: 'taken' };
    if (says && judgement === 'kept') return { kind: 'kept', job: says };
    try {
      const enforceIndex = job.JobModifyIndex ?? 0;
      await jobs.register(createEndingJob(job, self, reason), { enforceIndex, signal });
      return { kind: 'taken' };
    } catch (error) {
      if (!hasCode(error, 'NOMAD_CONFLICT') || conflicts >= MAX_CONFLICTS) throw error;
    }
  }
}

/**
 * What is to be done about a job that is to be purged: purge it, since it was taken and no client has it; take it first; or
 * leave it to whoever has it.
 */
export function judge(use: Use | undefined, self: ReplicaId, from: TakenFrom): 'taken' | 'take' | 'kept' {
  if (!use) return 'take';
  const isDead = typeof from === 'object' && use.owner === from.owner;
  if (use.owner !== self && from !== 'anybody' && !isDead) return 'kept';
  return use.ending === undefined ? 'take' : 'taken';
}
