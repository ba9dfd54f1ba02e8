import { WebSocket } from 'ws';
import { hasCode } from '../base/errors.js';
import type { ServiceError } from '../base/errors.js';
import type { ExecOptions } from './api.js';
import type { Attempt, Connection } from './connection.js';
import { Departure } from './connection.js';
import { fromFailure } from './errors.js';
import type { Asked } from './errors.js';
import { readRefusal } from './refusal.js';
import { WebSocketExecSession } from './exec-session.js';

/**
 * Opens exec sockets: the upgrade of `GET /v1/client/allocation/<id>/exec`.
 *
 * An upgrade counts against the limit of connections until it is decided, an open socket does not. A command is never
 * started twice: the next address is tried only where no socket came about.
 *
 * Not here: what is said on the socket (exec-session.ts, exec-frames.ts).
 */

/** Largest frame taken from Nomad, which sends about 4 KiB of output in one. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** How long the other side may take to drop its end after both said goodbye. */
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * Resolves with the session once its socket is open; `sessions` holds it while it lasts. `options.signal` ends the
 * opening, not the session.
 */
export async function openExec(
  connection: Connection,
  options: ExecOptions,
  sessions: Set<WebSocketExecSession>,
): Promise<WebSocketExecSession> {
  const path = `/v1/client/allocation/${encodeURIComponent(options.allocationId)}/exec`;
  const asked = { method: 'GET', path, repeatable: false, signal: options.signal };
  const giveBack = await connection.slot(asked, options.signal);
  try {
    return await connection.overAddresses(asked, (address, signal) =>
      connect(connection, { address, asked, options, signal, sessions }),
    );
  } finally {
    giveBack();
  }
}

interface ConnectOptions {
  readonly address: URL;
  readonly asked: Asked;
  readonly options: ExecOptions;
  readonly signal: AbortSignal;
  readonly sessions: Set<WebSocketExecSession>;
}

async function connect(
  connection: Connection,
  { address, asked, options, signal, sessions }: ConnectOptions,
): Promise<Attempt<WebSocketExecSession>> {
  const { clock, log } = connection;
  const { tty, task, command, allocationId } = options;
  const tls = address.protocol === 'https:' ? await connection.tls() : {};
  const url = connection.url(address, asked.path, {
    command: JSON.stringify(command),
    task,
    tty: String(tty),
  });
  const departure = new Departure();
  const socketOptions = {
    ...tls,
    headers: connection.headers(),
    perMessageDeflate: false,
    // Frames are JSON over base64, and are checked where they are read.
    skipUTF8Validation: true,
    maxPayload: MAX_FRAME_BYTES,
    closeTimeout: CLOSE_TIMEOUT_MS,
    finishRequest: (request: Parameters<Departure['watch']>[0]) => {
      departure.watch(request);
      request.end();
    },
  };
  return await new Promise((resolve) => {
    const socket = new WebSocket(url, socketOptions);
    const settle = (outcome: Attempt<WebSocketExecSession>): void => {
      signal.removeEventListener('abort', abort);
      resolve(outcome); // a later call does nothing
    };
    const fail = (error: ServiceError, sent: boolean): void => {
      socket.terminate();
      settle({ error, resend: sent ? 'if-repeatable' : 'always' });
    };
    const abort = (): void => fail(fromFailure(asked, signal.reason), departure.happened);
    const onError = (error: Error): void => fail(fromFailure(asked, error), departure.happened);
    // Stays for good: terminating a socket that is not open yet makes one more error.
    socket.on('error', onError);
    socket.once('unexpected-response', (_request, response) => {
      void readRefusal(asked, response.statusCode ?? 0, response).then((error) => {
        // No socket, no command: a server that is overloaded or has none behind it may be passed over.
        fail(error, !hasCode(error, 'NOMAD_OVERLOADED', 'NOMAD_UNREACHABLE'));
      });
    });
    socket.once('open', () => {
      socket.off('error', onError);
      const session: WebSocketExecSession = new WebSocketExecSession({
        socket,
        clock,
        log: log.child({ allocationId, task }),
        tty,
        onEnd: () => sessions.delete(session),
      });
      sessions.add(session);
      settle({ value: session });
    });
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
