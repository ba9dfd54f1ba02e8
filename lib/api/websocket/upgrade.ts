/**
 * Upgrades to the WebSocket of an execution.
 *
 * Everything that can be wrong is answered in plain HTTP with a JSON body before the upgrade; `take` comes last and
 * right before the handshake, so that no execution is taken by a socket that never opens. Requests that ask for another
 * protocol (some HTTP clients offer `h2c` with every request) are handed back to the server as ordinary ones.
 *
 * Not here: what travels afterwards (proxy.ts).
 */
import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { ServiceError } from '../../base/errors.js';
import { executionId } from '../../base/ids.js';
import type { PreparedExecution } from '../../execution/api.js';
import { parseSubprotocols, SERAI_V1 } from '../../protocol/subprotocols.js';
import type { Authenticator } from '../access/authenticator.js';
import { assertAllowed } from '../access/principal.js';
import { contextOf, logRequest, openContext } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { sendError } from '../middleware/errors.js';
import { openSocket } from '../operations/runners.js';
import { expressPath } from '../routes/route.js';
import { ExecutionProxy } from './proxy.js';

/** Longest frame of input. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;
const ROUTE = expressPath(openSocket);
const SOCKET_PATH = new RegExp(`^${ROUTE.replace(':id', '([^/]+)')}$`);

export class WebSocketGateway {
  readonly #deps: ApiDeps;
  readonly #authenticator: Authenticator;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_PAYLOAD_BYTES,
    handleProtocols: (offered) => offered.has(SERAI_V1) && SERAI_V1,
  });
  readonly #open = new Map<ExecutionProxy, Promise<void>>();
  #isStopping = false;

  constructor(deps: ApiDeps, authenticator: Authenticator) {
    this.#deps = deps;
    this.#authenticator = authenticator;
  }

  /** Sockets that are open or whose execution has not ended. */
  get size(): number {
    return this.#open.size;
  }

  /** Takes over a connection that asked for a WebSocket. Never throws. */
  upgrade(req: IncomingMessage, connection: Socket, head: Buffer): void {
    const res = new ServerResponse(req);
    const context = openContext(req, res, this.#deps);
    try {
      const execution = this.#admit(req, connection);
      this.#server.handleUpgrade(req, connection, head, (socket) => {
        logRequest(context, 101, this.#deps);
        this.#serve(socket, connection, execution);
      });
    } catch (error) {
      this.#refuse(req, res, connection, error);
    }
  }

  /** Refuses new sockets. Resolves when the executions of all open ones have ended and they are closed. */
  async drain(): Promise<void> {
    this.#isStopping = true;
    while (this.#open.size > 0) await Promise.all(this.#open.values());
  }

  /** Ends every running execution; their clients get `message`. */
  interrupt(message: string): void {
    for (const proxy of this.#open.keys()) proxy.interrupt(message);
  }

  /** Drops every connection. */
  destroy(): void {
    for (const proxy of this.#open.keys()) proxy.destroy();
  }

  /** The execution that this upgrade is for. Throws what the client is to be told. */
  #admit(req: IncomingMessage, connection: Socket): PreparedExecution {
    const context = contextOf(req);
    const principal = this.#authenticator.admit(req, 'upgrade');
    const [path = ''] = (req.url ?? '').split('?', 1);
    const [, encodedId] = SOCKET_PATH.exec(path) ?? [];
    if (encodedId === undefined) {
      throw new ServiceError('ROUTE_NOT_FOUND', 'there is no WebSocket at this path');
    }
    context.route = ROUTE;
    assertAllowed(principal, openSocket.access);
    if (this.#isStopping) throw new ServiceError('STOPPED', 'the service is stopping');
    assertHandshake(req);
    const { executionID } = openSocket.parseQuery(req);
    const runner = this.#deps.runners.get(decode(encodedId));
    if (!connection.readable || !connection.writable) {
      throw new ServiceError('STOPPED', 'the client left before its upgrade');
    }
    return this.#deps.executions.take(runner, executionId(executionID));
  }

  #serve(socket: WebSocket, connection: Socket, execution: PreparedExecution): void {
    const { clock, log } = this.#deps;
    const proxy = new ExecutionProxy({ socket, connection, execution, clock, log });
    this.#open.set(
      proxy,
      proxy.run().finally(() => this.#open.delete(proxy)),
    );
  }

  #refuse(req: IncomingMessage, res: ServerResponse, connection: Socket, error: unknown): void {
    connection.on('error', () => connection.destroy());
    res.assignSocket(connection);
    res.shouldKeepAlive = false;
    res.once('finish', () => {
      res.detachSocket(connection);
      connection.destroySoon();
      res.emit('close');
    });
    sendError(req, res, error, this.#deps);
  }
}

/** Whether an `upgrade` event is about a WebSocket at all. */
export function wantsWebSocket(req: IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Gives a connection back to HTTP: its head is written again without the offer to upgrade and read by `serve`, which
 * takes a connection as if it were new.
 */
export function asOrdinaryRequest(
  req: IncomingMessage,
  connection: Socket,
  head: Buffer,
  serve: (connection: Socket) => void,
): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] ?? '';
    const value = req.rawHeaders[index + 1] ?? '';
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  const wantsClose = /(^|,)\s*close\s*(,|$)/i.test(req.headers.connection ?? '');
  lines.push(`Connection: ${wantsClose ? 'close' : 'keep-alive'}`, '', '');
  connection.unshift(Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), head]));
  serve(connection);
}

/** What `ws` demands too; asked here, so that nothing can fail once the execution is taken. */
function assertHandshake({ method, headers }: IncomingMessage): void {
  const key = headers['sec-websocket-key'];
  const version = headers['sec-websocket-version'];
  const isSound =
    method === 'GET' &&
    key !== undefined &&
    /^[+/0-9A-Za-z]{22}==$/.test(key) &&
    (version === '13' || version === '8');
  if (!isSound) throw new ServiceError('INVALID_REQUEST', 'this is no WebSocket handshake of version 13');
  parseSubprotocols(headers['sec-websocket-protocol']);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the path is not encoded as a URL has to be');
  }
}

/** Narrows what the `upgrade` event calls a duplex stream; it is the TCP connection. */
export function isSocket(stream: Duplex): stream is Socket {
  return stream instanceof Socket;
}
