import { isAxiosError } from 'axios';
import { ServiceError } from '../base/errors.js';
import type { ErrorCode } from '../base/errors.js';

/**
 * Turns what went wrong on the way to Nomad into our errors, once, at the edge.
 *
 * No error made here holds a token: axios keeps whole request configurations in its errors, so they are never kept as
 * a cause; only what lies beneath them is. Query strings are left out too, since a command travels in one.
 */

/** What was asked, for messages; the path comes without its query. */
export interface Asked {
  readonly method: string;
  readonly path: string;
}

/** Longest part of a body that an error carries. */
const BODY_LIMIT = 2048;
const MESSAGE_LIMIT = 300;

/** Texts of 500 answers that say "not now": no leader, a leader that just changed, a server that is cut off or full. */
const NOT_NOW =
  /no cluster leader|node is not the leader|leadership (was )?lost|no path to region|failed to get conn|timed out enqueuing|rpc error: (eof|.*connection (refused|reset))|too many (open |concurrent )?(connections|requests)/i;

const DENIED = /permission denied|acl token (not found|expired)/i;

/** True for a text by which Nomad says that the token is not good enough. */
export function isDenial(text: string): boolean {
  return DENIED.test(text);
}

/** The error for an answer whose status is no success. */
export function fromStatus(asked: Asked, status: number, body: string): ServiceError {
  const code = codeOfStatus(status, body);
  // A failed check-and-set of a variable answers with the variable, whose values are nobody's business here.
  const shown = status === 409 ? '' : cut(body, BODY_LIMIT);
  const told = shown.trim() === '' ? `status ${status}` : cut(oneLine(shown), MESSAGE_LIMIT);
  return new ServiceError(
    code,
    `${SENTENCES[code] ?? 'Nomad failed'} ${asked.method} ${asked.path}: ${told}`,
    {
      details: { ...placeOf(asked), status, ...(shown === '' ? {} : { body: shown }) },
    },
  );
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  NOMAD_REFUSED: 'Nomad refused',
  NOMAD_CONFLICT: 'something else was there first for',
  NOMAD_REJECTED: 'Nomad rejected',
  NOMAD_OVERLOADED: 'Nomad cannot serve now',
  NOMAD_NOT_FOUND: 'Nomad does not know what was asked by',
  NOMAD_UNREACHABLE: 'Nomad is not behind the address that was asked by',
  NOMAD_PROTOCOL: 'Nomad answered unexpectedly to',
};

function codeOfStatus(status: number, body: string): ErrorCode {
  if (status === 401 || status === 403) return 'NOMAD_REFUSED';
  if (status === 404) return 'NOMAD_NOT_FOUND';
  if (status === 409) return 'NOMAD_CONFLICT';
  if (status === 429) return 'NOMAD_OVERLOADED';
  // A proxy that finds no Nomad behind it.
  if (status === 502 || status === 503 || status === 504) return 'NOMAD_UNREACHABLE';
  if (status < 400 || status === 405 || status === 501) return 'NOMAD_PROTOCOL';
  if (status < 500) return 'NOMAD_REJECTED';
  // Nomad answers 500 to nearly everything; only the text tells a bad job from a busy server.
  if (body.includes('Enforcing job modify index')) return 'NOMAD_CONFLICT';
  if (isDenial(body)) return 'NOMAD_REFUSED';
  return NOT_NOW.test(body) ? 'NOMAD_OVERLOADED' : 'NOMAD_REJECTED';
}

/** The error for an exchange that broke before a whole answer was there. */
export function fromFailure(asked: Asked, failure: unknown): ServiceError {
  const cause = withoutRequest(failure);
  const text = textOf(cause);
  const code = isMalformed(failure) ? 'NOMAD_PROTOCOL' : 'NOMAD_UNREACHABLE';
  const sentence = code === 'NOMAD_PROTOCOL' ? 'Nomad answered unreadably to' : 'Nomad cannot be reached for';
  return new ServiceError(code, `${sentence} ${asked.method} ${asked.path}: ${text}`, {
    cause,
    details: placeOf(asked),
  });
}

/** The error for an answer that is not what Nomad's API promises. */
export function protocolError(
  what: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
) {
  return new ServiceError('NOMAD_PROTOCOL', `unexpected answer of Nomad: ${what}`, {
    details,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Method and path alone: a whole call holds a body and a query that are nobody's business in a log. */
export function placeOf({ method, path }: Asked) {
  return { method, path };
}

/** What lies beneath an axios error, or its bare message: the error itself holds the request's headers. */
function withoutRequest(failure: unknown): Error {
  if (!isAxiosError(failure)) return failure instanceof Error ? failure : new Error(String(failure));
  const { cause, message } = failure;
  return cause instanceof Error && !isAxiosError(cause) ? cause : new Error(message);
}

/** A connection to a name with several addresses fails with one error for each and no message of its own. */
function textOf(error: Error): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors
      .map((each: unknown) => (each instanceof Error ? each.message : String(each)))
      .join(', ');
  }
  return oneLine(error.message) || error.name;
}

function isMalformed(failure: unknown): boolean {
  if (!(failure instanceof Error)) return false;
  const code = 'code' in failure && typeof failure.code === 'string' ? failure.code : '';
  return code.startsWith('HPE_') || failure.message.startsWith('maxContentLength');
}

function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
