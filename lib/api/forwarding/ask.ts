/**
 * One request to the owner of a runner, up to the first byte of its answer.
 *
 *   connect ── no body ─────────────────────────────────────▶ answered, or upgraded
 *      └────── body: head, "100 Continue" ── body streams ──▶
 *
 * As long as none of the body was sent nothing is lost: the request may go elsewhere, and the reply says so (`unheard`).
 * After that it may have been carried out, so its failure is the client's to know.
 *
 * Not here: which replica is asked, and how often (forwarder.ts); what becomes of the answer (relay.ts, socket-relay.ts).
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { request as plainRequest } from 'node:http';
import { request as encryptedRequest } from 'node:https';
import type { Socket } from 'node:net';
import { reasonOf } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';
import type { OwnerAgents } from './owner-agents.js';

const CONNECT_MS = 2000;

/** What `ask` sends, and what ends it. */
export interface OwnerRequest {
  /** Base address of the replica. */
  readonly address: URL;
  readonly agents: OwnerAgents;
  readonly method: string;
  /** As on the wire. */
  readonly target: string;
  /** Names and values in turn; with a body, `Expect: 100-continue` is among them. */
  readonly headers: readonly string[];
  /** Where the body comes from; undefined where there is none. */
  readonly body: IncomingMessage | undefined;
  readonly clock: Clock;
  /** Ends the request. Its reason is the rejection. */
  readonly signal: AbortSignal;
  /** Ends it as if the connection had been lost. */
  readonly lostSignal: AbortSignal;
  readonly progress: AskProgress;
}

/** Called while a request is on its way, each at most once. */
export interface AskProgress {
  /** Head and body are sent. */
  sent(): void;
  /** The owner takes the body, which now streams at the client's pace. */
  continued(): void;
}

/** What came of a request. */
export type Reply =
  | { readonly kind: 'answered'; readonly response: IncomingMessage; readonly isBodySent: boolean }
  | {
      readonly kind: 'upgraded';
      readonly response: IncomingMessage;
      readonly connection: Socket;
      readonly head: Buffer;
    }
  /** It was not carried out, and the body is untouched. */
  | { readonly kind: 'unheard'; readonly isRefused: boolean };

/**
 * Asks once. OWNER_UNREACHABLE where the owner cannot be connected to in time, or is lost while it may be at work; the
 * reason of the signal. After an answer the body goes on to stream until the owner closes or has all of it.
 */
export function ask(options: OwnerRequest): Promise<Reply> {
  const { address, agents, method, target, headers, body, clock, signal, lostSignal, progress } = options;
  const isEncrypted = address.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const agent: Agent = isEncrypted ? agents.encrypted : agents.plain;
    const request = (isEncrypted ? encryptedRequest : plainRequest)({
      agent,
      hostname: address.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: address.port === '' ? (isEncrypted ? 443 : 80) : address.port,
      method,
      path: target,
      headers,
    });
    let isBodySent = false;
    let isSettled = false;
    const settle = (end: () => void): void => {
      if (isSettled) return;
      isSettled = true;
      signal.removeEventListener('abort', onAbort);
      lostSignal.removeEventListener('abort', onLost);
      end();
    };
    const onAbort = (): void => {
      settle(() => reject(reasonOf(signal)));
      request.destroy();
    };
    const onLost = (): void => void request.destroy();
    const onFailure = (error?: Error): void =>
      settle(() => {
        const isRefused = error !== undefined && 'code' in error && error.code === 'ECONNREFUSED';
        if (error instanceof ServiceError) reject(error);
        else if (isBodySent) reject(lost(error));
        else resolve({ kind: 'unheard', isRefused });
      });
    prepareConnection(request, isEncrypted, clock);
    request.on('error', onFailure);
    request.on('close', () => onFailure());
    request.on('continue', () => {
      if (!body || isBodySent) return;
      isBodySent = true;
      progress.continued();
      sendBody(body, request, () => progress.sent());
    });
    request.on('response', (response) => {
      // Whoever relays it sees by `complete` whether it broke off.
      response.on('error', () => undefined);
      settle(() => resolve({ kind: 'answered', response, isBodySent }));
    });
    request.on('upgrade', (response, connection, head) => {
      settle(() => resolve({ kind: 'upgraded', response, connection, head }));
      // Nobody waits for it any more.
      if (signal.aborted) connection.destroy();
    });
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort);
    lostSignal.addEventListener('abort', onLost);
    if (body) request.flushHeaders();
    else request.end(() => progress.sent());
  });
}

function lost(cause: Error | undefined): ServiceError {
  return new ServiceError(
    'OWNER_UNREACHABLE',
    'the replica that has the runner was lost while it worked on the request, which may or may not have been carried out',
    { cause },
  );
}

function prepareConnection(request: ClientRequest, isEncrypted: boolean, clock: Clock): void {
  request.once('socket', (socket) => {
    // The head is bytes, as the parser gave it; Node would write one that leaves before a body as UTF-8.
    socket.setDefaultEncoding('latin1');
    // A kept one is connected already.
    if (!socket.connecting) return;
    const timer = clock.setTimer(CONNECT_MS, () =>
      request.destroy(
        new ServiceError('OWNER_UNREACHABLE', 'the replica that has the runner cannot be reached'),
      ),
    );
    const connected = (): void => timer.cancel();
    socket.once(isEncrypted ? 'secureConnect' : 'connect', connected).once('close', connected);
  });
}

/** Streams the body, each side at the pace of the slower one. When one side leaves, so does the other. */
function sendBody(body: IncomingMessage, request: ClientRequest, sent: () => void): void {
  body.once('close', () => {
    if (!body.complete) request.destroy();
  });
  request.once('finish', sent);
  request.once('close', () => {
    body.unpipe(request);
    // What the owner does not want any more is dropped.
    body.resume();
  });
  body.pipe(request);
}
