import { deadline, orAbort } from '../base/abort.js';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { KillRequest, KillResult } from '../shell/kill-tree.js';
import { killScript, parseKillResult } from '../shell/kill-tree.js';
import { feed, scriptReader } from '../shell/script.js';
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

export interface KillDeps extends SessionDeps {
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
): Promise<KillOutcome> {
  using limit = deadline(deps.clock, KILL_MS, 'EXECUTION_FAILED', 'ending the processes took too long');
  const signal = AbortSignal.any([limit.signal, runner.runnerSignal]);
  let cause = 'no attempt was made';
  while (!signal.aborted) {
    try {
      const result = await orAbort(attempt(deps, runner, request, signal), signal);
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

async function attempt(
  { nomad }: KillDeps,
  { allocationId, task }: ClaimedRunner,
  request: Omit<KillRequest, 'allocationId'>,
  signal: AbortSignal,
): Promise<KillResult> {
  const exec = await nomad.openExec({ allocationId, task, command: scriptReader(), tty: false, signal });
  try {
    let output = '';
    exec.onOutput((name, chunk) => {
      if (name === 'stdout' && output.length < 1000) output += chunk.toString('latin1');
    });
    void exec.write(feed(killScript({ ...request, allocationId })));
    exec.closeStdin();
    const end = await orAbort(exec.end, signal);
    const result = parseKillResult(output);
    if (!result) throw new Error(`the exec ended without a result: ${JSON.stringify(end)}`);
    return result;
  } finally {
    exec.destroy();
  }
}
