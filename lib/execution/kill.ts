import { deadline, orAbort } from '../base/abort.js';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { ClaimedRunner } from '../runners/runner.js';
import { hangUpScript } from '../shell/hang-up-tree.js';
import type { KillRequest, KillResult } from '../shell/kill-tree.js';
import { killScript, parseKillResult } from '../shell/kill-tree.js';
import type { ScriptDeps } from './script-exec.js';
import { runScript } from './script-exec.js';
import type { SessionDeps } from './session.js';

/** Everything of an execution is dead within this time, or its runner is given up. */
export const KILL_MS = 2000;
const RETRY_MS = 100;

export type KillOutcome =
  | { readonly kind: 'clean'; readonly nobody: number }
  | { readonly kind: 'survivors'; readonly left: number }
  /** Nobody could look. */
  | { readonly kind: 'failed'; readonly cause: string }
  /** The runner went meanwhile, and all of its processes with it. */
  | { readonly kind: 'gone' };

export interface KillDeps extends SessionDeps, ScriptDeps {
  readonly log: Logger;
}

/**
 * Ends processes in a runner by an exec of its own (shell/kill-tree.ts). An exec that cannot be opened is tried again
 * until the time is over. Never rejects.
 */
export async function killTree(
  deps: KillDeps,
  runner: ClaimedRunner,
  request: Omit<KillRequest, 'allocationId'>,
  limitMs = KILL_MS,
): Promise<KillOutcome> {
  using limit = deadline(deps.clock, limitMs, 'EXECUTION_FAILED', 'ending the processes took too long');
  const signal = AbortSignal.any([limit.signal, runner.runnerSignal]);
  const text = killScript({ ...request, allocationId: runner.allocationId });
  let cause = 'no attempt was made';
  while (!signal.aborted) {
    try {
      const script = runScript(deps, runner, { text, parse: parseKillResult, signal });
      const result = await orAbort(script, signal);
      return result.left === 0
        ? { kind: 'clean', nobody: result.nobody }
        : { kind: 'survivors', left: result.left };
    } catch (error) {
      cause = messageOf(error);
      if (!signal.aborted) deps.log.debug('attempt to end the processes failed', { error });
      await deps.clock.sleep(RETRY_MS, signal);
    }
  }
  return runner.runnerSignal.aborted ? { kind: 'gone' } : { kind: 'failed', cause };
}

/** How long looking for what a command left behind may take. */
const HANG_UP_MS = 5000;

/**
 * Hangs up on what an execution that ended by itself left in its terminal (shell/hang-up-tree.ts). Undefined where nobody
 * could look. Never rejects.
 */
export async function hangUpTree(
  deps: KillDeps,
  runner: ClaimedRunner,
  request: Omit<KillRequest, 'allocationId'>,
): Promise<KillResult | undefined> {
  using limit = deadline(deps.clock, HANG_UP_MS, 'EXECUTION_FAILED', 'looking for processes took too long');
  const signal = AbortSignal.any([limit.signal, runner.runnerSignal]);
  const text = hangUpScript({ ...request, allocationId: runner.allocationId });
  try {
    return await orAbort(runScript(deps, runner, { text, parse: parseKillResult, signal }), signal);
  } catch (error) {
    if (!signal.aborted) deps.log.debug('what a command left behind could not be looked for', { error });
    return undefined;
  }
}
