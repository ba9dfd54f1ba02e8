/**
 * Whose a used runner is: what the writes to its job say, and what the life of its owner means for it.
 *
 * Of two writes to one job the one with the higher index counts, whatever path its news came by and in whatever order. So
 * an event that is older than our own write undoes nothing, and one that is newer takes the runner from us at once, without
 * a purge: another replica took us for dead, and serves its client now.
 */
import type { RunnerId } from '../base/ids.js';
import type { Draft } from './draft.js';
import { remove } from './leave.js';
import { follow } from './life.js';
import type { RunnerJob } from './observation.js';
import type { GoneReason } from './runner.js';
import type { ClusterView, JobWrite, Runner, Use } from './state.js';

/** Takes in what a job says of its runner. */
export function noteJob(draft: Draft, runner: Runner, job: RunnerJob): Runner {
  const { writtenAt, used } = job;
  const next = { ...runner, seen: draft.sequence };
  return writtenAt === undefined
    ? noteWrite(draft, next, runner.written)
    : noteWrite(draft, next, { index: writtenAt, used });
}

/** Takes in a write to the job of a runner, unless a newer one is known; the phase is left as it is. */
export function noteWrite(draft: Draft, runner: Runner, write: JobWrite): Runner {
  const next = write.index > runner.written.index ? { ...runner, written: write } : runner;
  draft.setRunner(next);
  return next;
}

/** Whether a use is this service's: alone, all that is in use is. */
export function isOurs({ self, isShared }: ClusterView, use: Use): boolean {
  return !isShared || use.owner === self;
}

/** Lets the phase of a runner follow the newest write to its job. */
export function followWrite(draft: Draft, runner: Runner): void {
  const { used } = runner.written;
  if (!used) return;
  const { phase } = runner;
  const ours = isOurs(draft.cluster, used);
  switch (phase.name) {
    case 'starting':
    case 'idle':
      if (ours) adoptUsed(draft, runner, used);
      else becomeForeign(draft, runner, used);
      return;
    case 'adopting':
    case 'used':
      if (ours) return;
      if (phase.name === 'used') draft.effect({ kind: 'gone', id: runner.id, reason: reasonOf(used) });
      becomeForeign(draft, runner, used);
      return;
    case 'foreign':
      if (ours) adoptUsed(draft, runner, used);
      else if (phase.use !== used) becomeForeign(draft, runner, used);
      return;
    case 'claiming': // its outcome tells
    case 'removing': // whoever purges it reads the job first
  }
}

/** What our client is told whose runner another replica took. */
function reasonOf({ ending }: Use): GoneReason {
  return ending === 'environment-deleted' ? ending : 'taken-over';
}

/** Our runner, found used in Nomad: it is handed on once its allocation is known to run. */
export function adoptUsed(draft: Draft, runner: Runner, use: Use): void {
  const { now, startTimeoutMs } = draft.context;
  if (use.ending !== undefined) {
    remove(draft, runner, 'retired'); // we were ended before we had purged it
    return;
  }
  const next = draft.setPhase(runner, { name: 'adopting', since: now, timeoutSeconds: use.timeoutSeconds });
  draft.wake(now + startTimeoutMs);
  follow(draft, next);
}

/** Another replica has the runner. */
export function becomeForeign(draft: Draft, runner: Runner, use: Use): void {
  draft.setPhase(runner, { name: 'foreign', use, orphanedAt: undefined });
  noteOrphan(draft, runner.id);
}

/** A job that was to be purged is another replica's. An environment that is being deleted takes it all the same. */
export function onKept(draft: Draft, job: RunnerJob): void {
  const runner = draft.runner(job.id);
  if (runner?.phase.name !== 'removing') return;
  const { used } = noteJob(draft, runner, job).written;
  const known = draft.runner(job.id);
  if (!used || !known) return;
  becomeForeign(draft, known, used);
  const foreign = draft.runner(job.id);
  if (foreign && draft.pool(job.environmentId)?.phase === 'deleting')
    remove(draft, foreign, 'environment-deleted');
}

/** Who lives and who leads has changed. */
export function applyCluster(draft: Draft, view: ClusterView): void {
  draft.set({ cluster: view });
  for (const pool of draft.pools()) {
    const { id } = pool.stored.environment;
    draft.touched.add(id);
    for (const runner of draft.members(id)) {
      if (runner.phase.name === 'foreign') noteOrphan(draft, runner.id);
      // What another leader would have given up, and perhaps has not, is ours to give up now.
      else if (view.leads && runner.phase.name === 'starting') follow(draft, runner);
    }
  }
}

/** Keeps in mind since when the owner of a foreign runner is dead. */
function noteOrphan(draft: Draft, id: RunnerId): void {
  const runner = draft.runner(id);
  if (runner?.phase.name !== 'foreign') return;
  const { phase } = runner;
  const { owner } = phase.use;
  const { living } = draft.cluster;
  const isOrphan = living !== undefined && (owner === undefined || !living.has(owner));
  const orphanedAt = isOrphan ? (phase.orphanedAt ?? draft.context.now) : undefined;
  if (orphanedAt !== phase.orphanedAt) draft.setPhase(runner, { ...phase, orphanedAt });
  if (orphanedAt !== undefined) draft.wake(orphanedAt + patienceMs(draft, phase.use));
}

/** Ends the runner of a dead owner that nobody asked for in a long time; only the leader does. */
export function endOrphan(draft: Draft, runner: Runner): void {
  if (runner.phase.name !== 'foreign' || runner.phase.orphanedAt === undefined) return;
  const endsAt = runner.phase.orphanedAt + patienceMs(draft, runner.phase.use);
  if (draft.context.now < endsAt) draft.wake(endsAt);
  else if (draft.cluster.leads) remove(draft, runner, 'orphaned');
}

/** One that was taken to be purged has no client to wait for. */
function patienceMs(draft: Draft, use: Use): number {
  return use.ending === undefined ? draft.context.orphanTimeoutMs : 0;
}
