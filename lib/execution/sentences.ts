import { ServiceError } from '../base/errors.js';
import type { GoneReason } from '../runners/runner.js';
import type { Refusal } from '../shell/frames.js';
import type { Exit } from './api.js';

/**
 * What a client is told when a command did not come to its own end. Fixed sentences: texts of Nomad and of a runner's
 * tools stay in the log.
 */
export const NOT_STARTED = 'the command could not be started in the runner';
export const NOMAD_SILENT = 'Nomad cannot be reached';
export const START_TOO_SLOW = 'the runner did not start the command in time';
export const CONNECTION_LOST = 'the connection to the command was lost';
export const RUNNER_LOST = 'the runner was lost while the command ran';
export const RUN_TWICE = 'the execution was run before';

const REFUSED: Readonly<Record<Refusal, string>> = {
  tools:
    'the runner lacks a tool that running commands takes: one of cat, dd, env, head, id, mkdir, mkfifo, printf',
  folder: 'the runner has no room for the command: its /tmp is full, read-only or missing',
  user: 'the image has no user for unprivileged commands',
  'root-user': 'the user for unprivileged commands is root',
  'no-drop':
    'the image cannot drop privileges: none of setpriv, su-exec, gosu, setuser, runuser and su does it there',
  directory: 'the working directory does not exist or is closed to the user',
};

export function refusalSentence(refusal: Refusal): string {
  return REFUSED[refusal];
}

/** True where every command in a runner as its image made it will be refused for the same reason. */
export function concernsEnvironment(refusal: Refusal): boolean {
  return refusal === 'tools' || refusal === 'user' || refusal === 'root-user' || refusal === 'no-drop';
}

const GONE: Readonly<Record<GoneReason, string>> = {
  returned: 'the runner was returned while the command ran',
  inactive: 'the runner was inactive for too long',
  restarted: 'the runner was restarted while the command ran',
  'allocation-stopped': RUNNER_LOST,
  'allocation-lost': RUNNER_LOST,
  'out-of-memory': 'the runner ran out of memory',
  'environment-deleted': 'the environment of the runner was deleted',
  'unconfirmed-write': RUNNER_LOST,
  'max-lifetime': 'the runner reached its longest lifetime',
  'not-killable': 'the runner was given up, because processes in it could not be ended',
  'taken-over': RUNNER_LOST,
  'service-stopping': 'the service is being stopped',
};

function isGoneReason(reason: unknown): reason is GoneReason {
  return typeof reason === 'string' && Object.hasOwn(GONE, reason);
}

/** How the executions of a runner end whose `runnerSignal` aborted. */
export function exitOfGoneRunner(signal: AbortSignal): Exit {
  const cause: unknown = signal.reason;
  const reason = cause instanceof ServiceError ? cause.details.reason : undefined;
  if (!isGoneReason(reason)) return { kind: 'failed', message: RUNNER_LOST };
  if (reason === 'inactive') return { kind: 'inactive' };
  if (reason === 'out-of-memory') return { kind: 'out-of-memory' };
  return { kind: 'failed', message: GONE[reason] };
}

/** How an execution ends whose session could not be opened. */
export function openFailureSentence(error: unknown): string {
  if (!(error instanceof ServiceError)) return NOT_STARTED;
  switch (error.code) {
    case 'NOMAD_UNREACHABLE':
      return NOMAD_SILENT;
    case 'NOMAD_OVERLOADED':
      return 'Nomad is overloaded, try again';
    case 'STOPPED':
      return GONE['service-stopping'];
    default:
      return NOT_STARTED;
  }
}
