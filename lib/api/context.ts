import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../base/errors.js';
import type { ReplicaId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { Principal } from './access/principal.js';
import type { ApiDeps } from './deps.js';
import type { Hop } from './forwarding/hop.js';

/** What belongs to one request, an upgrade included. Most requests need neither logger nor signal, so these are made when asked for. */
export class RequestContext {
  /** Named in the answer to an unexpected failure and in every log line of the request, on all replicas that it passes. */
  id: string;
  readonly method: string;
  readonly startedMs: number;
  /** The pattern that matched, such as `/api/v1/runners/:id`: no id, no query. */
  route = 'unknown';
  /** Who sends it; undefined until that is known. */
  principal: Principal | undefined;
  /** Code of the error that was answered. */
  errorCode: string | undefined;
  /** The replica that has the runner, if this one does not. */
  forwardedTo: ReplicaId | undefined;
  #hop: Hop | undefined;
  readonly #deps: ApiDeps;
  #log: Logger | undefined;
  #leaving: AbortController | undefined;
  #hasLeft = false;

  constructor(method: string, deps: ApiDeps) {
    this.#deps = deps;
    this.id = deps.randomness.uuid();
    this.method = method;
    this.startedMs = deps.clock.monotonicMs();
  }

  /** What the replica told that passed the request on; undefined for one that comes from its client. */
  get hop(): Hop | undefined {
    return this.#hop;
  }

  /** Another replica passed the request on. Nothing has been logged of it yet. */
  cameBy(hop: Hop): void {
    this.#hop = hop;
    this.id = hop.requestId;
    this.#log = undefined;
  }

  get log(): Logger {
    this.#log ??= this.#deps.log.child({ requestId: this.id });
    return this.#log;
  }

  /** Aborts when the client leaves before its answer was sent. */
  get requestSignal(): AbortSignal {
    if (!this.#leaving) {
      this.#leaving = new AbortController();
      if (this.#hasLeft) this.leave();
    }
    return this.#leaving.signal;
  }

  /** The client left before its answer was sent. */
  leave(): void {
    this.#hasLeft = true;
    this.#leaving?.abort(new ServiceError('STOPPED', 'the client left before its answer'));
  }
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
  const context = new RequestContext(req.method ?? '', deps);
  contexts.set(req, context);
  res.once('close', () => {
    const isAnswered = res.writableFinished;
    if (!isAnswered) context.leave();
    logRequest(context, isAnswered ? res.statusCode : 'client left', deps);
  });
  return context;
}

/** The one line of a request: no id, no query, of a token its name. */
export function logRequest(
  { id, method, route, startedMs, principal, errorCode, hop, forwardedTo }: RequestContext,
  status: number | 'client left',
  { clock, log }: ApiDeps,
): void {
  const fields = {
    requestId: id,
    method,
    route,
    status,
    ms: Math.round(clock.monotonicMs() - startedMs),
    ...(principal?.name === undefined ? {} : { tokenName: principal.name }),
    ...(errorCode === undefined ? {} : { code: errorCode }),
    ...(hop === undefined ? {} : { forwardedFrom: hop.from }),
    ...(forwardedTo === undefined ? {} : { forwardedTo }),
  };
  // Probes come every few seconds for ever.
  if (route.endsWith('/health')) log.debug('request', fields);
  else log.info('request', fields);
}
