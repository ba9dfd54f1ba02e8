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
import type { Crossing } from '../forwarding/crossing.js';
import type { OwnersReply } from '../forwarding/forwarder.js';
import { relayAnswer } from '../forwarding/relay.js';
import type { SocketRelayOptions } from '../forwarding/socket-relay.js';
import { SocketRelay } from '../forwarding/socket-relay.js';
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

type Upgraded = Extract<OwnersReply, { kind: 'upgraded' }>;
type OpenProxy = (options: ClientConnectionOptions) => SocketProxy;

/** What an upgrade may be for. */
interface Target {
  readonly operation: Operation;
  readonly route: string;
  readonly pattern: RegExp;
  readonly kind: SocketRelayOptions['kind'];
  /** Throws what the client is to be told; `claimed` does so for a runner that is gone. */
  readonly admit: (req: IncomingMessage, principal: Principal, claimed: () => ClaimedRunner) => OpenProxy;
}

/** An upgrade by somebody who may ask for it. */
interface Upgrade {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: Socket;
  readonly head: Buffer;
  readonly principal: Principal;
  readonly target: Target;
  readonly runnerId: string;
}

export interface WebSocketGatewayDeps {
  readonly deps: ApiDeps;
  readonly authenticator: Authenticator;
  readonly crossing: Crossing;
}

export class WebSocketGateway {
  readonly #deps: ApiDeps;
  readonly #authenticator: Authenticator;
  readonly #crossing: Crossing;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_PAYLOAD_BYTES,
    handleProtocols: (offered) => offered.has(SERAI_V1) && SERAI_V1,
  });
  readonly #targets = [
    target(openSocket, 'execution', (req, _principal, claimed) => this.#admitExecution(req, claimed)),
    target(openSession, 'session', (req, principal, claimed) => this.#admitSession(req, principal, claimed)),
  ];
  readonly #room = new CommandRoom();
  readonly #open = new Map<SocketProxy, Promise<void>>();
  #isStopping = false;

  constructor({ deps, authenticator, crossing }: WebSocketGatewayDeps) {
    this.#deps = deps;
    this.#authenticator = authenticator;
    this.#crossing = crossing;
  }

  /** Sockets that are open or whose execution has not ended. */
  get size(): number {
    return this.#open.size;
  }

  /** Takes over a connection that asked for a WebSocket. Never throws. */
  upgrade(req: IncomingMessage, connection: Socket, head: Buffer): void {
    const res = new ServerResponse(req);
    openContext(req, res, this.#deps);
    try {
      const upgrade = { req, res, connection, head, ...this.#identify(req) };
      if (this.#crossing.isHere(upgrade.runnerId)) this.#accept(upgrade);
      else void this.#cross(upgrade);
    } catch (error) {
      this.#refuse({ req, res, connection }, error);
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

  /** Who asks for what. Throws what the client is to be told. */
  #identify(req: IncomingMessage): Pick<Upgrade, 'principal' | 'target' | 'runnerId'> {
    const context = contextOf(req);
    const principal = this.#authenticator.admit(req, 'upgrade');
    assertNotFenced(this.#deps.cluster);
    const [path = ''] = (req.url ?? '').split('?', 1);
    for (const target of this.#targets) {
      const [, encodedId] = target.pattern.exec(path) ?? [];
      if (encodedId === undefined) continue;
      context.route = target.route;
      assertAllowed(principal, target.operation.access);
      if (this.#isStopping) throw new ServiceError('STOPPED', 'the service is stopping');
      return { principal, target, runnerId: decodeSegment(encodedId) };
    }
    throw new ServiceError('ROUTE_NOT_FOUND', 'there is no WebSocket at this path');
  }

  /** Opens the socket of a runner that is here. */
  #accept({ req, connection, head, principal, target, runnerId }: Upgrade): void {
    const openProxy = target.admit(req, principal, () => {
      const runner = this.#deps.runners.get(runnerId);
      if (connection.readable && connection.writable) return runner;
      throw new ServiceError('STOPPED', 'the client left before its upgrade');
    });
    this.#server.handleUpgrade(req, connection, head, (socket) => {
      logRequest(contextOf(req), 101, this.#deps);
      const { clock, log } = this.#deps;
      this.#serve(openProxy({ socket, connection, clock, log }));
    });
  }

  /** Has the owner of the runner open the socket. Never rejects. */
  async #cross(upgrade: Upgrade): Promise<void> {
    const { req, res, connection } = upgrade;
    const leave = (): void => contextOf(req).leave();
    connection.on('error', leave).once('close', leave);
    try {
      const reply = await this.#crossing.open(upgrade.runnerId, upgrade.target.operation, req, res);
      connection.off('error', leave).off('close', leave);
      if (this.#isStopping) {
        drop(reply);
        throw new ServiceError('STOPPED', 'the service is stopping');
      }
      if (!reply) this.#accept(upgrade);
      else if (reply.kind === 'upgraded') this.#relay(upgrade, reply);
      else await this.#passRefusal(upgrade, reply.response);
    } catch (error) {
      this.#refuse(upgrade, error);
    }
  }

  #relay({ req, connection: client, head: clientHead, target }: Upgrade, reply: Upgraded): void {
    const { clock, cluster } = this.#deps;
    const { owner, connection, response, head: ownerHead } = reply;
    logRequest(contextOf(req), 101, this.#deps);
    const { kind } = target;
    this.#serve(
      new SocketRelay({ client, clientHead, owner, connection, response, ownerHead, kind, cluster, clock }),
    );
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

  #serve(proxy: SocketProxy): void {
    this.#open.set(
      proxy,
      proxy.run().finally(() => this.#open.delete(proxy)),
    );
  }

  #refuse(refused: Pick<Upgrade, 'req' | 'res' | 'connection'>, error: unknown): void {
    answerOn(refused);
    sendError(refused.req, refused.res, error, this.#deps);
  }

  async #passRefusal(refused: Upgrade, response: IncomingMessage): Promise<void> {
    answerOn(refused);
    await relayAnswer(response, refused.res);
  }
}

/** Leaves the owner, whose reply nobody takes. */
function drop(reply: OwnersReply | undefined): void {
  if (reply?.kind === 'upgraded') reply.connection.destroy();
  else reply?.response.destroy();
}

/** Prepares a plain answer on a connection that was to be upgraded; it is closed after it. */
function answerOn({ res, connection }: Pick<Upgrade, 'res' | 'connection'>): void {
  connection.on('error', () => connection.destroy());
  res.assignSocket(connection);
  res.shouldKeepAlive = false;
  res.once('finish', () => {
    res.detachSocket(connection);
    connection.destroySoon();
    res.emit('close');
  });
}

function target(operation: Operation, kind: Target['kind'], admit: Target['admit']): Target {
  const route = expressPath(operation);
  return { operation, route, kind, pattern: new RegExp(`^${route.replace(':id', '([^/]+)')}$`), admit };
}
