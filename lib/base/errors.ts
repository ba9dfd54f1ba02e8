/**
 * Every failure the service can name, and what each means to a client.
 *
 * A failure is thrown as a `ServiceError` with a code from the one table below, which also holds its HTTP status, the
 * `errorCode` of the wire and whether trying again can help. Outcomes that are no failures (an exit code, a time
 * limit, a client that left) are unions returned by their layer, never errors.
 *
 * Statuses and error codes are those of Poseidon API 0.2.2. docs/errors.md is checked against this table.
 */

interface ErrorSpec {
  readonly status: number;
  /** Sent to the client beside the message; absent for client mistakes. */
  readonly errorCode?: WireErrorCode;
  readonly retryable: boolean;
}

/** The `errorCode` values that clients know. */
export type WireErrorCode =
  | 'NOMAD_UNREACHABLE'
  | 'NOMAD_OVERLOAD'
  | 'NOMAD_INTERNAL_SERVER_ERROR'
  | 'PREWARMING_POOL_DEPLETING'
  | 'UNKNOWN';

export const ERRORS = {
  INVALID_REQUEST: { status: 400, retryable: false },
  UNAUTHORIZED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  ENVIRONMENT_NOT_FOUND: { status: 404, retryable: false },
  EXECUTION_NOT_FOUND: { status: 404, retryable: false },
  ROUTE_NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  EXECUTION_TAKEN: { status: 409, retryable: false },
  RUNNER_GONE: { status: 410, retryable: false },
  BODY_TOO_LARGE: { status: 413, retryable: false },
  COMMAND_TOO_LARGE: { status: 413, retryable: false },
  FILE_TOO_LARGE: { status: 413, retryable: false },
  FILE_UNREADABLE: { status: 424, retryable: false },
  TOO_MANY_EXECUTIONS: { status: 429, retryable: true },
  UPLOADS_FULL: { status: 429, retryable: true },
  RATE_LIMITED: { status: 429, retryable: true },
  NO_RUNNER_AVAILABLE: { status: 500, errorCode: 'NOMAD_OVERLOAD', retryable: true },
  NOMAD_OVERLOADED: { status: 500, errorCode: 'NOMAD_OVERLOAD', retryable: true },
  NOMAD_UNREACHABLE: { status: 503, errorCode: 'NOMAD_UNREACHABLE', retryable: true },
  NOMAD_REFUSED: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: false },
  NOMAD_CONFLICT: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: true },
  NOMAD_REJECTED: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: false },
  NOMAD_NOT_FOUND: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: false },
  NOMAD_PROTOCOL: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: true },
  PLACEMENT_FAILED: { status: 500, errorCode: 'NOMAD_OVERLOAD', retryable: true },
  OWNER_UNREACHABLE: { status: 503, errorCode: 'UNKNOWN', retryable: true },
  NOT_READY: { status: 503, errorCode: 'NOMAD_UNREACHABLE', retryable: true },
  POOL_DEPLETING: { status: 503, errorCode: 'PREWARMING_POOL_DEPLETING', retryable: true },
  FILES_NOT_WRITTEN: { status: 500, errorCode: 'UNKNOWN', retryable: false },
  EXECUTION_FAILED: { status: 500, errorCode: 'NOMAD_INTERNAL_SERVER_ERROR', retryable: true },
  INVALID_CONFIG: { status: 500, errorCode: 'UNKNOWN', retryable: false },
  ILLEGAL_STATE: { status: 500, errorCode: 'UNKNOWN', retryable: false },
  FENCED: { status: 503, errorCode: 'UNKNOWN', retryable: true },
  NOT_A_MEMBER: { status: 503, errorCode: 'UNKNOWN', retryable: true },
  STOPPED: { status: 503, errorCode: 'UNKNOWN', retryable: true },
  UNKNOWN: { status: 500, errorCode: 'UNKNOWN', retryable: false },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

export interface ServiceErrorOptions extends ErrorOptions {
  /** Ids and limits for logs; never a secret, never a whole body. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** How long a client does well to wait before it tries again; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

/** A failure with a known meaning. Anything else that is thrown is a bug and becomes UNKNOWN at the edge. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** What the table says of a code. */
export function errorSpec(code: ErrorCode): ErrorSpec {
  return ERRORS[code];
}

/** True for our error with one of these codes; asks the code, not the class, so it also holds across package copies. */
export function hasCode(error: unknown, ...codes: ErrorCode[]): boolean {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code);
}

/** The text of anything that was thrown, for logs and messages. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
