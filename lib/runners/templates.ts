/**
 * What is heard of template jobs: environments come, change, vanish by accident, and are deleted, here or elsewhere.
 *
 * A replica that deletes an environment marks its template first and purges it last. The mark stops the pools of the
 * others, and tells them that the purge is no accident. One that missed the mark finds neither template nor runners in its
 * next listing, which no accident leaves behind.
 */
import type { EnvironmentId } from '../base/ids.js';
import type { StoredEnvironment, TemplateListing } from '../environments/store.js';
import type { Evaluation } from '../nomad/model.js';
import type { Draft } from './draft.js';
import { forget, remove } from './leave.js';
import type { Pool } from './state.js';

/** Our own templates are taken in as they are registered, by whichever replica; those of other tools by a listing. */
export function onTemplateJob(draft: Draft, stored: StoredEnvironment): void {
  const { id } = stored.environment;
  const pool = draft.pool(id);
  if (stored.foreign && !stored.deleting) return;
  if (stored.dead || pool?.phase === 'deleting' || isDeletedTemplate(draft, stored)) return;
  if (pool) {
    if (stored.jobModifyIndex > pool.stored.jobModifyIndex) takeIn(draft, stored);
    return;
  }
  // The first listing brings what is there. Later on, an event may still be a replay from before a deletion.
  if (draft.synced && !stored.deleting) draft.effect({ kind: 'inspect-template', id });
}

/** A template of which an event told is there, and is no replay. */
export function onTemplateFound(draft: Draft, stored: StoredEnvironment): void {
  if (draft.pool(stored.environment.id) || isDeletedTemplate(draft, stored)) return;
  takeIn(draft, stored);
}

/** A claim has read the template of its environment. */
export function onTemplateRead(draft: Draft, stored: StoredEnvironment): void {
  const pool = draft.pool(stored.environment.id);
  if (!pool || pool.phase === 'deleting' || stored.foreign) return;
  if (stored.jobModifyIndex > pool.stored.jobModifyIndex) takeIn(draft, stored);
}

/** A template was purged: a deletion that a replica announced has ended, or it was an accident. */
export function onTemplatePurged(draft: Draft, id: EnvironmentId, evaluation: Evaluation): void {
  const pool = draft.pool(id);
  const isNews = pool && evaluation.createIndex > pool.stored.jobModifyIndex;
  if (!isNews || evaluation.triggeredBy !== 'job-deregister') return;
  // Our own deletion has the phase `deleting` before its purge is sent, and ends with the answer to it.
  if (pool.phase === 'wanted') restore(draft, id);
  else if (pool.phase === 'deleting-elsewhere') dissolve(draft, pool);
}

/** Templates that were listed: environments come, change, and are registered again where they vanished. */
export function applyTemplates(
  draft: Draft,
  templates: TemplateListing,
  startedAt: number,
  isInUse: (id: EnvironmentId) => boolean = () => true,
): void {
  const listed = new Set<EnvironmentId>();
  for (const stored of templates.environments) {
    const { id } = stored.environment;
    listed.add(id);
    const known = draft.pool(id);
    if (known && known.seen > startedAt) continue; // written since
    if (known?.phase === 'deleting' || isDeletedTemplate(draft, stored)) continue;
    takeIn(draft, stored);
    if (stored.deleting && draft.cluster.leads) draft.effect({ kind: 'delete-environment', id });
    else if (stored.dead) restore(draft, id);
  }
  const unreadable = new Set(templates.unreadable.map(({ jobId }) => jobId));
  for (const pool of draft.pools()) {
    const { id } = pool.stored.environment;
    if (pool.phase === 'deleting' || pool.seen > startedAt || listed.has(id)) continue;
    if (unreadable.has(pool.stored.job.ID)) continue;
    const isDeleted = pool.phase === 'deleting-elsewhere' || (draft.cluster.isShared && !isInUse(id));
    if (isDeleted) dissolve(draft, pool);
    else restore(draft, id);
  }
}

/** True for a template that was deleted here and is told of by something older than that. */
export function isDeletedTemplate(draft: Draft, stored: StoredEnvironment): boolean {
  const last = draft.deletedTemplate(stored.environment.id);
  return last !== undefined && stored.jobModifyIndex <= last;
}

/** We delete an environment: all its runners go, whoever has them. */
export function onEnvironmentDeleting(draft: Draft, stored: StoredEnvironment): void {
  const { id } = stored.environment;
  draft.setTemplate(stored);
  draft.setPool(id, { phase: 'deleting' });
  for (const runner of draft.members(id)) remove(draft, runner, 'environment-deleted');
}

function takeIn(draft: Draft, stored: StoredEnvironment): void {
  draft.setTemplate(stored);
  draft.setPool(stored.environment.id, { phase: stored.deleting ? 'deleting-elsewhere' : 'wanted' });
}

function restore(draft: Draft, id: EnvironmentId): void {
  if (draft.cluster.leads) draft.effect({ kind: 'restore', id });
}

/** Another replica has deleted an environment, with all that was in it. */
function dissolve(draft: Draft, pool: Pool): void {
  const { id } = pool.stored.environment;
  for (const runner of draft.members(id)) {
    if (runner.phase.name === 'claiming') remove(draft, runner, 'environment-deleted');
    else if (runner.phase.name !== 'removing') forget(draft, runner, 'environment-deleted');
  }
  draft.removePool(id, pool.stored.jobModifyIndex);
}
