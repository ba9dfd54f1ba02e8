/**
 * The listening side of the API: connections, drain, and the end.
 *
 * stop() takes no new connection and no new request, lets what is in flight go on for `graceMs`, then tells running
 * executions that they are cut and drops what is left. Writing has no time limit: a slow client that reads is never
 * cut. What has limits is the head of a request, a body that stops arriving (middleware/body.ts) and idleness.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { messageOf, ServiceError } from '../base/errors.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import { mayListen } from '../config/loopback.js';
import { Authenticator } from './access/authenticator.js';
import { createApp } from './app.js';
import { openContext } from './context.js';
import type { ApiDeps } from './deps.js';
import { answerError } from './middleware/errors.js';
import { asOrdinaryRequest, isSocket, wantsWebSocket, WebSocketGateway } from './websocket/upgrade.js';

export interface ApiServerDeps extends ApiDeps {
  /** How long stop() waits for requests and executions in flight. */
  readonly graceMs: number;
}

/** The whole head of a request. */
const HEADERS_MS = 60_000;
/** Bounds a body that trickles. */
const REQUEST_MS = 60 * 60_000;
/** Longer than load balancers keep idle connections, so that it is they who close. */
const KEEP_ALIVE_MS = 75_000;
/** For the last messages of cut executions. */
const FAREWELL_MS = 1000;

export class ApiServer implements Lifecycle {
  readonly #deps: ApiServerDeps;
  readonly #gateway: WebSocketGateway;
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  /** Requests in progress by connection; an upgraded one stays until it closes. */
  readonly #busy = new Map<Duplex, number>();
  readonly #cut = new AbortController();
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    const authenticator = new Authenticator(deps);
    this.#gateway = new WebSocketGateway(deps, authenticator);
    const app = createApp(deps, authenticator);
    this.#server = createServer((req, res) => this.#onRequest(app, req, res));
    this.#server.headersTimeout = HEADERS_MS;
    this.#server.requestTimeout = REQUEST_MS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#server.on('connection', (connection: Socket) => this.#onConnection(connection));
    this.#server.on('upgrade', (req, stream, head) => this.#onUpgrade(req, stream, head));
    this.#server.on('clientError', (error, stream) => this.#onClientError(error, stream));
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Where clients of this machine reach it, such as `http://127.0.0.1:7200`. */
  get url(): string {
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) {
      throw new ServiceError('ILLEGAL_STATE', 'the server does not listen');
    }
    const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.address] ?? address.address;
    return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  }

  /** Listens. INVALID_CONFIG where the address is taken, unknown, or open to others without a token. */
  async start(): Promise<void> {
    assertNew('a server', this.#state);
    const { server, auth } = this.#deps.config;
    if (!mayListen({ server, auth })) {
      throw new ServiceError(
        'INVALID_CONFIG',
        `server.host ${server.host} is no loopback address; set a token or auth.allowAnonymous`,
      );
    }
    this.#state = 'running';
    await new Promise<void>((resolve, reject) => {
      const onError = (error: Error): void => {
        this.#state = 'stopped';
        this.#stopping = Promise.resolve();
        const isTaken = 'code' in error && error.code === 'EADDRINUSE';
        const why = isTaken ? 'it is taken; choose another server.port' : messageOf(error);
        const text = `cannot listen on ${server.host}:${server.port}: ${why}`;
        reject(new ServiceError('INVALID_CONFIG', text, { cause: error }));
      };
      this.#server.once('error', onError);
      this.#server.listen({ host: server.host, port: server.port }, () => {
        this.#server.off('error', onError);
        resolve();
      });
    });
  }

  /** Drains for at most the grace time, then cuts. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  /** Cuts now; also a stop that drains already. */
  destroy(): Promise<void> {
    this.#cut.abort(new ServiceError('STOPPED', 'the server was destroyed'));
    return this.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #shutDown(): Promise<void> {
    if (this.#state === 'new') {
      this.#state = 'stopped';
      return;
    }
    this.#state = 'stopping';
    const { clock, graceMs } = this.#deps;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#closeIdle();
    const drained = Promise.all([closed, this.#gateway.drain()]);
    const waiting = new AbortController();
    await Promise.race([drained, clock.sleep(graceMs, AbortSignal.any([this.#cut.signal, waiting.signal]))]);
    this.#gateway.interrupt('the service is stopping');
    if (this.#gateway.size > 0) await Promise.race([drained, clock.sleep(FAREWELL_MS, waiting.signal)]);
    waiting.abort();
    this.#gateway.destroy();
    for (const connection of this.#connections) connection.destroy();
    // Not `drained`: whoever owns the executions waits for the end of those that were cut.
    await closed;
    this.#state = 'stopped';
  }

  #onConnection(connection: Socket): void {
    if (this.#connections.has(connection)) return; // given back by an upgrade to something else
    this.#connections.add(connection);
    connection.once('close', () => {
      this.#connections.delete(connection);
      this.#busy.delete(connection);
    });
  }

  /** Node counts a connection that never sent anything as busy; its client would hold a stop back. */
  #closeIdle(): void {
    for (const connection of this.#connections) {
      if (!this.#busy.has(connection)) connection.destroySoon();
    }
  }

  #begin(connection: Duplex): void {
    this.#busy.set(connection, (this.#busy.get(connection) ?? 0) + 1);
  }

  #finish(connection: Duplex): void {
    const left = (this.#busy.get(connection) ?? 0) - 1;
    if (left > 0) this.#busy.set(connection, left);
    else this.#busy.delete(connection);
    if (this.#state === 'stopping') this.#closeIdle();
  }

  #onRequest(
    app: (req: IncomingMessage, res: ServerResponse) => void,
    req: IncomingMessage,
    res: ServerResponse,
  ): void {
    const connection = req.socket;
    this.#begin(connection);
    res.once('close', () => this.#finish(connection));
    if (this.#state === 'running') {
      app(req, res);
      return;
    }
    openContext(req, res, this.#deps);
    res.shouldKeepAlive = false;
    void answerError(req, res, new ServiceError('STOPPED', 'the service is stopping'), this.#deps);
  }

  #onUpgrade(req: IncomingMessage, stream: Duplex, head: Buffer): void {
    if (!isSocket(stream)) stream.destroy();
    else if (wantsWebSocket(req)) {
      this.#begin(stream);
      this.#gateway.upgrade(req, stream, head);
    } else asOrdinaryRequest(req, stream, head, (connection) => this.#server.emit('connection', connection));
  }

  /** What is no HTTP: answered in the API's form where nothing else is being answered on the connection. */
  #onClientError(error: Error, stream: Duplex): void {
    const code = 'code' in error ? error.code : undefined;
    if (!stream.writable || this.#busy.has(stream) || code === 'ECONNRESET') {
      stream.destroy();
      return;
    }
    const status = code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    const text = STATUS_CODES[status] ?? '';
    const body = JSON.stringify({ message: `this is no acceptable HTTP request: ${text}` });
    stream.end(
      [
        `HTTP/1.1 ${status} ${text}`,
        'Content-Type: application/json; charset=utf-8',
        `Content-Length: ${Buffer.byteLength(body)}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  }
}
