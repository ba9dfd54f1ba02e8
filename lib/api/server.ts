/**
 * The listening side of the API: connections, drain, and the end.
 *
 *   running ── drain ──▶ no new work; what is in flight goes on for `graceMs`, then is cut with a word ──▶ stop ──▶ closed
 *
 * Alone, a server that drains takes no connection. Among replicas a closed port says that whoever listened is dead, and
 * takes its runners from it with all that runs there: so it listens until stop(), and answers 503 meanwhile. Writing has
 * no time limit: a slow client that reads is never cut. What has limits is the head of a request, a body that stops
 * arriving (middleware/body.ts) and idleness.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { messageOf, ServiceError } from '../base/errors.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import { mayListen } from '../config/loopback.js';
import { Authenticator } from './access/authenticator.js';
import { createApp } from './app.js';
import { openContext } from './context.js';
import type { ApiDeps } from './deps.js';
import { holdBody } from './forwarding/continuation.js';
import { Crossing } from './forwarding/crossing.js';
import { Forwarder } from './forwarding/forwarder.js';
import { HOP_HEADER, HopSeal } from './forwarding/hop.js';
import { ServerCertificate } from './listening/certificate.js';
import { Connections } from './listening/connections.js';
import { answerError } from './middleware/errors.js';
import { asOrdinaryRequest, isSocket, wantsWebSocket } from './websocket/handshake.js';
import { WebSocketGateway } from './websocket/upgrade.js';

export interface ApiServerDeps extends ApiDeps {
  /** How long stop() waits for requests and executions in flight. */
  readonly graceMs: number;
}

/** The whole head of a request. */
const HEADERS_MS = 60_000;
/** From a connection to its encryption. */
const HANDSHAKE_MS = 30_000;
/** Bounds a body that trickles. */
const REQUEST_MS = 60 * 60_000;
/** Longer than load balancers keep idle connections, so that it is they who close. */
const KEEP_ALIVE_MS = 75_000;
/** For the last messages of cut executions. */
const FAREWELL_MS = 1000;

export class ApiServer implements Lifecycle {
  readonly #deps: ApiServerDeps;
  readonly #forwarder: Forwarder | undefined;
  readonly #gateway: WebSocketGateway;
  readonly #server: Server;
  readonly #certificate: ServerCertificate | undefined;
  readonly #connections = new Connections();
  readonly #cut = new AbortController();
  #state: LifecycleState = 'new';
  #draining: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
    const { secret } = deps.config.cluster;
    const seal = secret === undefined ? undefined : new HopSeal(secret);
    this.#forwarder = seal && new Forwarder({ ...deps, seal });
    const authenticator = new Authenticator({ ...deps, seal });
    const crossing = new Crossing(deps.runners, this.#forwarder);
    this.#gateway = new WebSocketGateway({ deps, authenticator, crossing });
    const app = createApp(deps, authenticator, crossing);
    const onRequest = (req: IncomingMessage, res: ServerResponse): void => this.#onRequest(app, req, res);
    const { certificate, key } = deps.config.server.tls;
    if (certificate === undefined || key === undefined) {
      this.#server = createServer({ noDelay: true }, onRequest);
    } else {
      const server = createTlsServer({ handshakeTimeout: HANDSHAKE_MS, noDelay: true }, onRequest);
      const { clock, log } = deps;
      const use = server.setSecureContext.bind(server);
      this.#certificate = new ServerCertificate({ files: { certificate, key }, clock, log, use });
      this.#server = server;
    }
    this.#connections.watch(this.#server, this.#certificate !== undefined);
    this.#server.headersTimeout = HEADERS_MS;
    this.#server.requestTimeout = REQUEST_MS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
      if (this.#forwarder && HOP_HEADER in req.headers) holdBody(req, res);
      else res.writeContinue();
      onRequest(req, res);
    });
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

  /** Where clients of this machine reach it, such as `http://127.0.0.1:7200`; https:// with a certificate. */
  get url(): string {
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) {
      throw new ServiceError('ILLEGAL_STATE', 'the server does not listen');
    }
    const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.address] ?? address.address;
    const scheme = this.#certificate ? 'https' : 'http';
    return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  }

  /**
   * Listens. INVALID_CONFIG where the address is taken, unknown, or open to others without a token, or the certificate
   * cannot be used; the server is stopped then.
   */
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
    try {
      await this.#certificate?.start();
      await this.#listen();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /**
   * Takes no new work, waits at most the grace time for what is in flight, then cuts it. Among replicas it goes on to
   * listen. Never rejects; every caller gets the same promise.
   */
  drain(): Promise<void> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  /** Drains, and closes the port. */
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

  #listen(): Promise<void> {
    const { host, port } = this.#deps.config.server;
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        const isTaken = 'code' in error && error.code === 'EADDRINUSE';
        const why = isTaken ? 'it is taken; choose another server.port' : messageOf(error);
        reject(
          new ServiceError('INVALID_CONFIG', `cannot listen on ${host}:${port}: ${why}`, { cause: error }),
        );
      };
      this.#server.once('error', onError);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', onError);
        resolve();
      });
    });
  }

  async #drain(): Promise<void> {
    if (this.#state === 'new') return;
    this.#state = 'stopping';
    const { clock, graceMs, cluster } = this.#deps;
    if (!cluster.isShared) this.#server.close();
    const ended = this.#connections.ended();
    this.#connections.closeIdle();
    const drained = Promise.all([ended, this.#gateway.drain()]);
    const waiting = new AbortController();
    await Promise.race([drained, clock.sleep(graceMs, AbortSignal.any([this.#cut.signal, waiting.signal]))]);
    this.#gateway.interrupt('the service is stopping');
    if (this.#gateway.size > 0) await Promise.race([drained, clock.sleep(FAREWELL_MS, waiting.signal)]);
    waiting.abort();
    // Not `drained`: whoever owns the executions waits for the end of those that were cut.
    this.#gateway.destroy();
    this.#connections.destroy();
    this.#forwarder?.destroy();
  }

  async #shutDown(): Promise<void> {
    await this.drain();
    if (this.#state !== 'new') {
      const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
      this.#connections.destroy();
      await closed;
      await this.#certificate?.stop();
    }
    this.#state = 'stopped';
  }

  #finish(connection: Duplex): void {
    this.#connections.finish(connection);
    if (this.#state === 'stopping') this.#connections.closeIfIdle(connection);
  }

  #onRequest(
    app: (req: IncomingMessage, res: ServerResponse) => void,
    req: IncomingMessage,
    res: ServerResponse,
  ): void {
    const connection = req.socket;
    this.#connections.begin(connection);
    res.once('close', () => this.#finish(connection));
    if (this.#state === 'running' && isTarget(req.url ?? '')) {
      app(req, res);
      return;
    }
    openContext(req, res, this.#deps);
    res.shouldKeepAlive = false;
    const error =
      this.#state === 'running'
        ? new ServiceError('INVALID_REQUEST', 'the address of the request is no URL')
        : new ServiceError('STOPPED', 'the service is stopping');
    void answerError(req, res, error, this.#deps);
  }

  #onUpgrade(req: IncomingMessage, stream: Duplex, head: Buffer): void {
    if (!isSocket(stream)) stream.destroy();
    else if (wantsWebSocket(req)) {
      this.#connections.begin(stream);
      this.#gateway.upgrade(req, stream, head);
    } else {
      const event = this.#certificate ? 'secureConnection' : 'connection';
      asOrdinaryRequest(req, stream, head, (connection) => this.#server.emit(event, connection));
    }
  }

  /** What is no HTTP: answered in the API's form where nothing else is being answered on the connection. */
  #onClientError(error: Error, stream: Duplex): void {
    const code = 'code' in error ? error.code : undefined;
    const isAnswerable = this.#connections.has(stream) && !this.#connections.isBusy(stream);
    if (!stream.writable || !isAnswerable || code === 'ECONNRESET') {
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

/** Whether the target of a request can be read as a URL; nearly all are plain paths. */
function isTarget(target: string): boolean {
  return /^\/(?!\/)[\w./?=&-]*$/.test(target) || URL.canParse(target, 'http://localhost');
}
