import type { ErrorCode } from '../../base/errors.js';
import type { Operation } from '../operations/operation.js';
import { runnerParameterOf } from '../operations/runners.js';

/**
 * Which operations can fail with each error of the table, and what the error means to a client.
 *
 * An error that is new in the table does not compile until it has its row here.
 */
export interface Failure {
  readonly of: FailureKind;
  /** Completes the sentence "… when"; docs/errors.md has the same words. */
  readonly meaning: string;
}

/**
 * `named`: of the operations that name it · `every` · `guarded`: of those that need a token · `scoped`: of those that
 * need a scope · `body`: of those that take one · `runner`: of those of one runner · `nomad`: of those that use Nomad ·
 * `none`: of none, since it is answered where there is no operation, or never answered.
 */
type FailureKind = 'named' | 'every' | 'guarded' | 'scoped' | 'body' | 'runner' | 'nomad' | 'none';

export const FAILURES: Readonly<Record<ErrorCode, Failure>> = {
  INVALID_REQUEST: {
    of: 'every',
    meaning: 'a body, parameter or path is not what it has to be; the field is named',
  },
  UNAUTHORIZED: { of: 'guarded', meaning: 'the token is missing or wrong' },
  FORBIDDEN: { of: 'scoped', meaning: 'the token lacks the scope that the route needs' },
  ENVIRONMENT_NOT_FOUND: { of: 'named', meaning: 'there is no environment with this id' },
  EXECUTION_NOT_FOUND: { of: 'named', meaning: 'no such execution was prepared, or it expired' },
  ROUTE_NOT_FOUND: { of: 'none', meaning: 'there is no such route' },
  METHOD_NOT_ALLOWED: { of: 'none', meaning: 'the route has other methods; `Allow` lists them' },
  EXECUTION_TAKEN: { of: 'named', meaning: 'the execution has or had its socket' },
  RUNNER_GONE: {
    of: 'named',
    meaning: 'the runner is not in use: returned, expired, lost, or never there',
  },
  BODY_TOO_LARGE: { of: 'body', meaning: 'the body is larger than `server.maxBodyBytes`' },
  COMMAND_TOO_LARGE: { of: 'named', meaning: 'the command is larger than `execution.maxCommandBytes`' },
  FILE_TOO_LARGE: { of: 'named', meaning: 'a file is larger than `server.maxFileBytes`' },
  FILE_UNREADABLE: {
    of: 'named',
    meaning: 'the path is missing, no regular file, or closed to the user',
  },
  TOO_MANY_EXECUTIONS: {
    of: 'named',
    meaning: 'the runner has `execution.maxPerRunner`, or all `execution.maxPrepared`',
  },
  UPLOADS_FULL: { of: 'named', meaning: 'other uploads take all the room, `server.maxSpoolBytes`' },
  RATE_LIMITED: { of: 'guarded', meaning: 'the token has sent more requests than `auth.rateLimit` allows' },
  NO_RUNNER_AVAILABLE: {
    of: 'named',
    meaning: 'no runner is idle; the message says why the pool is not full',
  },
  NOMAD_OVERLOADED: { of: 'nomad', meaning: 'Nomad has no leader, or refuses more requests' },
  PLACEMENT_FAILED: { of: 'nomad', meaning: 'Nomad found no node with room for a runner' },
  NOMAD_UNREACHABLE: { of: 'nomad', meaning: 'Nomad does not answer' },
  OWNER_UNREACHABLE: {
    of: 'runner',
    meaning: 'the replica that has the runner does not answer, or has just lost it',
  },
  NOT_READY: { of: 'named', meaning: 'the service has not read Nomad yet since it started' },
  NOMAD_REFUSED: { of: 'nomad', meaning: "Nomad refuses the service's token (403)" },
  NOMAD_CONFLICT: {
    of: 'nomad',
    meaning: 'something else changed the same object in Nomad at the same time',
  },
  NOMAD_REJECTED: { of: 'nomad', meaning: 'Nomad does not take a job; its words are in the message' },
  NOMAD_NOT_FOUND: { of: 'nomad', meaning: 'an object that has to be in Nomad is not there' },
  NOMAD_PROTOCOL: { of: 'nomad', meaning: 'Nomad answered something else than its API promises' },
  FILES_NOT_WRITTEN: {
    of: 'named',
    meaning: 'paths that could not be written are named; the others are written',
  },
  EXECUTION_FAILED: {
    of: 'named',
    meaning: 'a command could not be run, or its end could not be learned',
  },
  POOL_DEPLETING: { of: 'named', meaning: '`/health` only: pools are under `pool.alertThreshold`' },
  FENCED: {
    of: 'every',
    meaning: 'another process goes by the name of this service, `cluster.replica`',
  },
  NOT_A_MEMBER: {
    of: 'named',
    meaning: '`/health` only: the service cannot take its part among several',
  },
  STOPPED: { of: 'every', meaning: 'the service is stopping' },
  INVALID_CONFIG: { of: 'none', meaning: 'the configuration is wrong; the service does not start' },
  ILLEGAL_STATE: { of: 'every', meaning: 'a fault of the service itself' },
  UNKNOWN: {
    of: 'every',
    meaning: "an unexpected failure; the message names the request's id in the log",
  },
};

/** Every error that an operation can be answered with, in the order of the table above. */
export function failuresOf(operation: Operation): ErrorCode[] {
  const named = new Set<ErrorCode>(operation.failures);
  return (Object.keys(FAILURES) as ErrorCode[]).filter(
    (code) => named.has(code) || isOfKind(operation, FAILURES[code].of),
  );
}

function isOfKind(operation: Operation, kind: FailureKind): boolean {
  const { access, body, usesNomad } = operation;
  switch (kind) {
    case 'every':
      return true;
    case 'guarded':
      return access !== 'everybody';
    case 'scoped':
      return access !== 'everybody' && access !== 'any-token';
    case 'body':
      return body !== undefined;
    case 'runner':
      return runnerParameterOf(operation) !== undefined;
    case 'nomad':
      return usesNomad === true;
    case 'named':
    case 'none':
      return false;
  }
}
