import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { Principal } from './access/principal.js';
import type { ApiDeps } from './deps.js';

/** What belongs to one request, an upgrade included. */
export interface RequestContext {
  /** Named in the answer to an unexpected failure and in every log line of the request. */
  readonly id: string;
  readonly log: Logger;
  readonly method: string;
  readonly startedMs: number;
  /** Aborts when the client leaves before its answer was sent. */
  readonly requestSignal: AbortSignal;
  /** The pattern that matched, such as `/api/v1/runners/:id`: no id, no query. */
  route: string;
  /** Who sends it; undefined until that is known. */
  principal: Principal | undefined;
  /** Code of the error that was answered. */
  errorCode: string | undefined;
}

const contexts = new WeakMap<IncomingMessage, RequestContext>();

/** The context of a request that went through `openContext`. */
export function contextOf(req: IncomingMessage): RequestContext {
  const context = contexts.get(req);
  if (!context) throw new ServiceError('ILLEGAL_STATE', 'a request without a context');
  return context;
}

/**
 * Opens the context of a request with its answer: when that is sent, or its client gone, the one log line of the
 * request is written.
 */
export function openContext(req: IncomingMessage, res: ServerResponse, deps: ApiDeps): RequestContext {
  const id = deps.randomness.uuid();
  const leaving = new AbortController();
  const context: RequestContext = {
    id,
    log: deps.log.child({ requestId: id }),
    method: req.method ?? '',
    startedMs: deps.clock.monotonicMs(),
    requestSignal: leaving.signal,
    route: 'unknown',
    principal: undefined,
    errorCode: undefined,
  };
  contexts.set(req, context);
  res.once('close', () => {
    const isAnswered = res.writableFinished;
    if (!isAnswered) leaving.abort(new ServiceError('STOPPED', 'the client left before its answer'));
    logRequest(context, isAnswered ? res.statusCode : 'client left', deps);
  });
  return context;
}

/** The one line of a request: no id, no query, of a token its name. */
export function logRequest(
  { log, method, route, startedMs, principal, errorCode }: RequestContext,
  status: number | 'client left',
  { clock }: ApiDeps,
): void {
  const fields = {
    method,
    route,
    status,
    ms: Math.round(clock.monotonicMs() - startedMs),
    ...(principal?.name === undefined ? {} : { tokenName: principal.name }),
    ...(errorCode === undefined ? {} : { code: errorCode }),
  };
  // Probes come every few seconds for ever.
  if (route.endsWith('/health')) log.debug('request', fields);
  else log.info('request', fields);
}
