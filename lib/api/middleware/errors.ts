/**
 * The one place where an error becomes an answer: its code's row of the table gives status and `errorCode`.
 *
 * What is no ServiceError is a bug: the client gets UNKNOWN with the id of the request, under which the log has the
 * rest. No stack and no foreign text crosses here.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorCode, WireErrorCode } from '../../base/errors.js';
import { errorSpec, ServiceError } from '../../base/errors.js';
import type { ErrorAnswer } from '../../protocol/http.js';
import { sendJson } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { isBodyHeld } from '../forwarding/continuation.js';
import { FENCED, HOP_HEADER } from '../forwarding/hop.js';
import { discardBody } from './body.js';

/** Waiting helps within a second or two for most retryable failures. */
const DEFAULT_RETRY_SECONDS = 1;

/** Answers a request with an error, once its body is out of the way. Never rejects. */
export async function answerError(
  req: IncomingMessage,
  res: ServerResponse,
  error: unknown,
  deps: ApiDeps,
): Promise<void> {
  if (isBodyHeld(req) || !(await discardBody(req, deps.clock))) res.shouldKeepAlive = false;
  sendError(req, res, error, deps);
}

/** Answers with an error at once, whatever is left of the request. */
export function sendError(req: IncomingMessage, res: ServerResponse, error: unknown, deps: ApiDeps): void {
  const context = contextOf(req);
  const known = toServiceError(error, context.id);
  context.errorCode = known.code;
  if (known.code === 'UNKNOWN') context.log.error('a request failed unexpectedly', { error });
  else context.log.debug('request refused', { error: known });
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { status, errorCode } = wireForm(known.code, isHealth(context.route), deps.config.api.peerStatuses);
  if (errorSpec(known.code).retryable) {
    res.setHeader('Retry-After', retryAfter(known, deps.randomness.random()));
  }
  if (known.code === 'FENCED' && context.hop) res.setHeader(HOP_HEADER, FENCED);
  if (known.code === 'UNAUTHORIZED') res.setHeader('WWW-Authenticate', 'Bearer realm="serai"');
  const body: ErrorAnswer = {
    message: known.message,
    ...(errorCode === undefined ? {} : { errorCode }),
  };
  sendJson(res, status, body);
}

function toServiceError(error: unknown, requestId: string): ServiceError {
  if (error instanceof ServiceError && error.code !== 'UNKNOWN') return error;
  // Express refuses a path that cannot be decoded with an error that carries its status.
  if (error instanceof Error && 'status' in error && error.status === 400) {
    return new ServiceError('INVALID_REQUEST', 'the path is not encoded as a URL has to be');
  }
  return new ServiceError('UNKNOWN', `an unexpected failure; the log has more under requestId ${requestId}`);
}

/** What a client sees of an error. */
export interface WireForm {
  readonly status: number;
  readonly errorCode: WireErrorCode | undefined;
}

/** Status and code on the wire; older clients know 500 where the table says 409, 429 or 503, save for /health. */
export function wireForm(code: ErrorCode, isHealthCheck: boolean, peerStatuses: boolean): WireForm {
  const { status, errorCode } = errorSpec(code);
  if (!peerStatuses || isHealthCheck) return { status, errorCode };
  if (status === 409 || status === 429) return { status: 500, errorCode: 'NOMAD_OVERLOAD' };
  if (status === 503) return { status: 500, errorCode: 'NOMAD_UNREACHABLE' };
  return { status, errorCode };
}

function isHealth(route: string): boolean {
  return route.endsWith('/health');
}

/** Whole seconds, spread so that clients who were refused together do not come back together. */
function retryAfter({ retryAfterSeconds = DEFAULT_RETRY_SECONDS }: ServiceError, random: number): string {
  return String(Math.max(1, Math.ceil(retryAfterSeconds * (1 + random / 2))));
}
