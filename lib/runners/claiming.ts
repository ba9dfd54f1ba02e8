/**
 * A claim in the state: the runner that it takes, and what its write came to.
 *
 * Not here: the write itself (claims.ts).
 */
import type { RunnerId } from '../base/ids.js';
import { currentOf } from './allocation-record.js';
import type { Draft } from './draft.js';
import { removeClaimed } from './leave.js';
import { becomeUsed, follow } from './life.js';
import type { ClaimOutcome } from './observation.js';
import { adoptUsed, becomeForeign, followWrite, isOurs, noteJob, noteWrite } from './ownership.js';
import type { GoneReason } from './runner.js';
import type { Runner } from './state.js';
import { isCurrent } from './state.js';

/** A claim has chosen a runner. */
export function onTaken(draft: Draft, id: RunnerId, timeoutSeconds: number): void {
  const runner = draft.runner(id);
  if (runner?.phase.name !== 'idle') return;
  draft.setPhase(runner, {
    name: 'claiming',
    generation: runner.generation,
    timeoutSeconds,
    lost: undefined,
  });
}

/** The write of a claim has ended. */
export function onClaimSettled(draft: Draft, id: RunnerId, outcome: ClaimOutcome): void {
  const runner = draft.runner(id);
  if (runner?.phase.name !== 'claiming') return;
  const { lost, timeoutSeconds } = runner.phase;
  switch (outcome.kind) {
    case 'written':
      onClaimWritten(draft, runner, outcome.jobModifyIndex, { timeoutSeconds, lost });
      return;
    case 'foreign':
      onClaimedElsewhere(draft, noteJob(draft, runner, outcome.job), lost);
      return;
    case 'untouched':
      if (lost !== undefined) removeClaimed(draft, runner, lost);
      else becomeIdleAgain(draft, runner);
      return;
    case 'absent':
      removeClaimed(draft, runner, 'purged-outside');
      return;
    case 'uncertain':
      removeClaimed(draft, runner, 'unconfirmed-write');
  }
}

function onClaimWritten(
  draft: Draft,
  runner: Runner,
  index: number,
  { timeoutSeconds, lost }: { timeoutSeconds: number; lost: GoneReason | undefined },
): void {
  const owner = draft.cluster.self;
  const noted = noteWrite(draft, runner, { index, used: { timeoutSeconds, owner, ending: undefined } });
  const { used } = noted.written;
  const pool = draft.pool(runner.environmentId);
  const record = currentOf(runner.allocations);
  const isOutdated = pool?.phase !== 'wanted' || !isCurrent(runner, pool.stored);
  if (used && !isOurs(draft.cluster, used))
    becomeForeign(draft, noted, used); // taken over already
  else if (lost !== undefined || !record || isOutdated) removeClaimed(draft, noted, lost ?? 'retired');
  else becomeUsed(draft, noted, record, timeoutSeconds);
}

function onClaimedElsewhere(draft: Draft, runner: Runner, lost: GoneReason | undefined): void {
  const { used } = runner.written;
  const ours = used !== undefined && isOurs(draft.cluster, used);
  if (used && !ours && lost !== 'environment-deleted') becomeForeign(draft, runner, used);
  else if (lost !== undefined || !used) removeClaimed(draft, runner, lost ?? 'unconfirmed-write');
  else adoptUsed(draft, runner, used);
}

/** Nothing was written. What happened to it meanwhile holds now. */
function becomeIdleAgain(draft: Draft, runner: Runner): void {
  follow(draft, draft.setPhase(runner, { name: 'idle' }));
  const next = draft.runner(runner.id);
  if (next) followWrite(draft, next);
}
