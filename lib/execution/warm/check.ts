import { deadline, orAbort } from '../../base/abort.js';
import { hasCode } from '../../base/errors.js';
import type { Randomness } from '../../base/ids.js';
import { newExecutionId } from '../../base/ids.js';
import type { Config } from '../../config/config.js';
import type { Environment } from '../../environments/environment.js';
import type { Refusal, RunnerUser } from '../../shell/frames.js';
import { isDenial } from '../../nomad/errors.js';
import { commandRequest, newToken } from '../command.js';
import type { Pulse } from '../pulse.js';
import type { CommandEnd, CommandSession, SessionDeps, SessionOptions } from '../session.js';

/** How long a command that does nothing may take in a session that was just opened. */
const CHECK_MS = 15_000;

export type OpenSession = (deps: SessionDeps, options: SessionOptions) => Promise<CommandSession>;

export interface CheckDeps extends SessionDeps {
  readonly pulse: Pulse;
  readonly randomness: Randomness;
  readonly config: Pick<Config, 'execution' | 'runner'>;
}

export interface CheckOptions extends SessionOptions {
  readonly open: OpenSession;
  readonly environment: Environment;
  /** Who unprivileged commands are, where that is known. */
  readonly user: RunnerUser | undefined;
}

/** What became of a session that was opened ahead. */
export type Checked =
  | { readonly kind: 'ready'; readonly session: CommandSession; readonly user: RunnerUser | undefined }
  /** The image has what a command takes, and not what a session takes that serves several. */
  | { readonly kind: 'single'; readonly user: RunnerUser | undefined }
  /** The runner refuses commands. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** It could not be opened, or was cut: of that the runner need not be the cause. */
  | { readonly kind: 'unavailable'; readonly error: unknown }
  /** It opened, and did not answer as every runner has to. */
  | { readonly kind: 'wrong'; readonly what: string };

/**
 * Opens a session and has it run a command that does nothing, in the way of every other command: as the user, with both
 * streams framed and the exit code told. Never rejects; unless it is ready, nothing is left of the session.
 */
export async function openChecked(deps: CheckDeps, options: CheckOptions): Promise<Checked> {
  const { open, environment, signal } = options;
  let { user } = options;
  let session: CommandSession;
  try {
    session = await open(deps, options);
  } catch (error) {
    return { kind: 'unavailable', error };
  }
  using limit = deadline(deps.clock, CHECK_MS, 'EXECUTION_FAILED', 'a check took too long');
  try {
    const request = commandRequest({
      id: newExecutionId(deps.randomness),
      token: newToken(deps.randomness),
      request: { command: ':', privileged: false, environment: {}, workingDirectory: undefined },
      config: deps.config,
      environment,
      user,
    });
    const running = session.run(request, {
      started: () => undefined,
      output: () => undefined,
      user: (found) => (user = found),
    });
    const end = await orAbort(running, AbortSignal.any([limit.signal, signal]));
    const verdict = end.kind === 'exited' && end.exitCode === 0 ? await session.settle() : 'spent';
    // A command that does nothing leaves nothing: what came meanwhile belongs to others.
    if (verdict !== 'spent') return { kind: 'ready', session, user };
    await discard(session, signal);
    return judge(end, user);
  } catch (error) {
    await discard(session, signal);
    const isOurs = signal.aborted || !hasCode(error, 'EXECUTION_FAILED') || !(await deps.pulse.answers());
    return isOurs
      ? { kind: 'unavailable', error }
      : { kind: 'wrong', what: `it did not answer within ${CHECK_MS / 1000} s` };
  }
}

function judge(end: CommandEnd, user: RunnerUser | undefined): Checked {
  switch (end.kind) {
    case 'refused':
      return { kind: 'refused', refusal: end.refusal };
    case 'exited':
      return end.exitCode === 0
        ? { kind: 'single', user }
        : { kind: 'wrong', what: `a command that does nothing ended with exit code ${end.exitCode}` };
    case 'lost': {
      const told = end.end;
      // 1006: the connection broke. A denial is the token's fault, and the same for every runner.
      const isElsewhere = told.kind === 'closed' && (told.code === 1006 || isDenial(told.reason));
      if (isElsewhere) return { kind: 'unavailable', error: told };
      return {
        kind: 'wrong',
        what:
          told.kind === 'closed'
            ? `its exec was closed with ${told.code}${told.reason === '' ? '' : ` (${told.reason.slice(0, 200)})`}`
            : `its exec ended with exit code ${told.exitCode}`,
      };
    }
  }
}

async function discard(session: CommandSession, signal: AbortSignal): Promise<void> {
  if (signal.aborted) session.destroy();
  else await session.close();
}
