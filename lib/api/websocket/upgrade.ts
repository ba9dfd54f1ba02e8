/**
 * Upgrades to the WebSocket of an execution or a session.
 *
 * Everything that can be wrong is answered in plain HTTP with a JSON body before the upgrade; `take` comes last and
 * right before the handshake, so that no execution is taken by a socket that never opens. Requests that ask for another
 * protocol (some HTTP clients offer `h2c` with every request) are handed back to the server as ordinary ones
 * (handshake.ts).
 *
 * Not here: what travels afterwards (proxy.ts, session-proxy.ts).
 */
import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { ServiceError } from '../../base/errors.js';
import { executionId } from '../../base/ids.js';
import { SERAI_V1 } from '../../protocol/subprotocols.js';
import type { ClaimedRunner } from '../../runners/runner.js';
import type { Authenticator } from '../access/authenticator.js';
import type { Principal } from '../access/principal.js';
import { assertNotFenced } from '../access/fence.js';
import { assertAllowed } from '../access/principal.js';
import { contextOf, logRequest, openContext } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { sendError } from '../middleware/errors.js';
import type { Operation } from '../operations/operation.js';
import { openSession, openSocket } from '../operations/runners.js';
import { expressPath } from '../routes/route.js';
import type { ClientConnectionOptions } from './client-connection.js';
import { CommandRoom } from './command-queue.js';
import { decodeSegment, parseHandshake } from './handshake.js';
import type { SocketProxy } from './proxy.js';
import { ExecutionProxy } from './proxy.js';
import { SessionProxy } from './session-proxy.js';

/** Longest frame of input. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;

type OpenProxy = (options: ClientConnectionOptions) => SocketProxy;

/** What an upgrade may be for. */
interface Target {
  readonly operation: Operation;
  readonly route: string;
  readonly pattern: RegExp;
  /** Throws what the client is to be told; `claimed` does so for a runner that is gone. */
  readonly admit: (req: IncomingMessage, principal: Principal, claimed: () => ClaimedRunner) => OpenProxy;
}

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
  readonly #targets = [
    target(openSocket, (req, _principal, claimed) => this.#admitExecution(req, claimed)),
    target(openSession, (req, principal, claimed) => this.#admitSession(req, principal, claimed)),
  ];
  readonly #room = new CommandRoom();
  readonly #open = new Map<SocketProxy, Promise<void>>();
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
      const openProxy = this.#admit(req, connection);
      this.#server.handleUpgrade(req, connection, head, (socket) => {
        logRequest(context, 101, this.#deps);
        this.#serve(socket, connection, openProxy);
      });
    } catch (error) {
      this.#refuse(req, res, connection, error);
    }
  }

  /**
   * Refuses new sockets, and new commands on open ones. Resolves when the executions of all open ones have ended and they
   * are closed.
   */
  async drain(): Promise<void> {
    this.#isStopping = true;
    for (const proxy of this.#open.keys()) proxy.drain();
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

  /** Throws what the client is to be told. */
  #admit(req: IncomingMessage, connection: Socket): OpenProxy {
    const context = contextOf(req);
    const principal = this.#authenticator.admit(req, 'upgrade');
    assertNotFenced(this.#deps.cluster);
    const [path = ''] = (req.url ?? '').split('?', 1);
    for (const { operation, route, pattern, admit } of this.#targets) {
      const [, encodedId] = pattern.exec(path) ?? [];
      if (encodedId === undefined) continue;
      context.route = route;
      assertAllowed(principal, operation.access);
      if (this.#isStopping) throw new ServiceError('STOPPED', 'the service is stopping');
      return admit(req, principal, () => {
        const runner = this.#deps.runners.get(decodeSegment(encodedId));
        if (connection.readable && connection.writable) return runner;
        throw new ServiceError('STOPPED', 'the client left before its upgrade');
      });
    }
    throw new ServiceError('ROUTE_NOT_FOUND', 'there is no WebSocket at this path');
  }

  #admitExecution(req: IncomingMessage, claimed: () => ClaimedRunner): OpenProxy {
    parseHandshake(req);
    const { executionID } = openSocket.parseQuery(req);
    const execution = this.#deps.executions.take(claimed(), executionId(executionID));
    return (options) => new ExecutionProxy({ ...options, execution });
  }

  #admitSession(req: IncomingMessage, principal: Principal, claimed: () => ClaimedRunner): OpenProxy {
    if (parseHandshake(req).chosen !== SERAI_V1) {
      throw new ServiceError(
        'INVALID_REQUEST',
        `a session takes the subprotocol ${SERAI_V1}; offer it in Sec-WebSocket-Protocol`,
      );
    }
    openSession.parseQuery(req);
    const runner = claimed();
    const { executions } = this.#deps;
    const admitCommand = (): void => this.#authenticator.pace(principal);
    return (options) => new SessionProxy({ ...options, runner, executions, admitCommand, room: this.#room });
  }

  #serve(socket: WebSocket, connection: Socket, openProxy: OpenProxy): void {
    const { clock, log } = this.#deps;
    const proxy = openProxy({ socket, connection, clock, log });
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

function target(operation: Operation, admit: Target['admit']): Target {
  const route = expressPath(operation);
  return { operation, route, pattern: new RegExp(`^${route.replace(':id', '([^/]+)')}$`), admit };
}
