/**
 * How a runner leaves: its client is told at once, its job purged until Nomad confirms.
 *
 * Among several replicas a job is taken by a write before it is purged, under the index that was read, so that nobody
 * purges a runner that another replica has just handed out. From whom it may be taken is decided here; the taking is
 * secure.ts. Where another has it after all, `kept` makes it `foreign` (ownership.ts).
 */
import type { Draft } from './draft.js';
import type { TakenFrom } from './observation.js';
import type { GoneReason } from './runner.js';
import type { Phase, RemovalReason, Runner } from './state.js';

/** Gives a runner up. */
export function remove(draft: Draft, runner: Runner, reason: RemovalReason): void {
  const { phase } = runner;
  if (phase.name === 'removing') return;
  if (phase.name === 'claiming' && phase.lost === undefined) {
    // The write is on its way: the claim is told when it returns, and the job purged then.
    draft.setPhase(runner, { ...phase, lost: toldReason(reason) });
    return;
  }
  if (phase.name === 'claiming') return;
  if (phase.name === 'used') draft.effect({ kind: 'gone', id: runner.id, reason });
  purge(draft, runner, reason);
}

/** Takes a runner whose claim has ended badly out of service. */
export function removeClaimed(draft: Draft, runner: Runner, reason: RemovalReason): void {
  purge(draft, runner, reason);
}

/** Forgets a runner whose job is known to be gone. Its client, should it have one here, is told why. */
export function forget(draft: Draft, runner: Runner, reason: RemovalReason): void {
  if (runner.phase.name === 'used') draft.effect({ kind: 'gone', id: runner.id, reason });
  draft.bury(runner.id);
}

function purge(draft: Draft, runner: Runner, reason: RemovalReason): void {
  draft.setPhase(runner, { name: 'removing', reason });
  draft.effect({ kind: 'purge', id: runner.id, from: takenFrom(draft, runner.phase, reason), reason });
}

function takenFrom(draft: Draft, phase: Phase, reason: RemovalReason): TakenFrom {
  if (!draft.cluster.isShared) return 'nobody';
  if (reason === 'environment-deleted') return 'anybody';
  if (phase.name === 'foreign') return { owner: phase.use.owner };
  return phase.name === 'used' && reason === 'returned' ? 'nobody' : 'pool';
}

/** What whoever uses a runner is told: what concerns the pool alone means to them that Nomad ended it. */
export function toldReason(reason: RemovalReason): GoneReason {
  switch (reason) {
    case 'retired':
    case 'failed':
    case 'orphaned':
    case 'purged-outside':
      return 'allocation-stopped';
    default:
      return reason;
  }
}
