import http from 'node:http';
import https from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { ScriptedExec } from './scripted-exec.js';

/**
 * A Nomad that says exactly what a test tells it to, on a port of its own: the place for what a real one does seldom.
 *
 *   const nomad = await ScriptedNomad.start();
 *   nomad.on('GET', '/v1/jobs', reply({ body: [] }));                    // every such request
 *   nomad.once('GET', '/v1/jobs', reply({ status: 500, body: 'No cluster leader' }));   // the next one only
 *   nomad.on('GET', /^\/v1\/job\//, async (call) => { await gate.promise; call.reply({ body: job }); });
 *   const stream = await nomad.nextStream();   // the next GET /v1/event/stream, which got no answer yet
 *   stream.open(); stream.line({}); stream.write('{"Ind'); stream.reset();
 *   const exec = await nomad.nextExec();       // the next exec socket, open
 *   exec.send({ stdout: { data: 'aGkK' } }); exec.close(1000);
 *   await nomad.stop();
 *
 * A request without a script is answered with 501, and `requests` records all of them.
 */
export interface RecordedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON. */
  json(): unknown;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown;
}

export type Handler = (call: ScriptedCall) => void | Promise<void>;

/** A handler that always answers the same. */
export function reply(answer: Reply): Handler {
  return (call) => call.reply(answer);
}

/** One request and the means to answer it, politely or not. */
export class ScriptedCall {
  readonly request: RecordedRequest;
  readonly #response: ServerResponse;

  constructor(request: RecordedRequest, response: ServerResponse) {
    this.request = request;
    this.#response = response;
  }

  reply({ status = 200, headers = {}, body }: Reply): void {
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' || body === undefined ? 'text/plain' : 'application/json';
    this.#response.writeHead(status, { 'content-type': type, ...headers });
    this.#response.end(text);
  }

  /** Sends headers; `write`, `end` and `reset` follow. */
  open(status = 200, headers: Readonly<Record<string, string>> = {}): void {
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
  }

  /** Part of a body, as it is. Resolves when the socket took it; false once the client is gone. */
  write(chunk: string | Buffer): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#response.destroyed) resolve(false);
      else this.#response.write(chunk, (error) => resolve(!error));
    });
  }

  /** One line of JSON. */
  line(value: unknown): Promise<boolean> {
    return this.write(`${JSON.stringify(value)}\n`);
  }

  end(): void {
    this.#response.end();
  }

  /** Drops the connection without a goodbye. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }

  /** Resolves when the client has gone or the answer is complete. */
  closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#response.closed) resolve();
      else this.#response.once('close', resolve);
    });
  }
}

export interface ScriptedNomadOptions {
  /** PEM texts; the server speaks TLS then, and asks for a client certificate where `ca` is given. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
}

interface Script {
  readonly method: string;
  readonly path: string | RegExp;
  readonly handler: Handler;
  readonly isOnce: boolean;
}

const EXEC_PATH = /^\/v1\/client\/allocation\/[^/]*\/exec$/;

export class ScriptedNomad implements AsyncDisposable {
  /** Everything that was asked, exec upgrades included, oldest first. */
  readonly requests: RecordedRequest[] = [];
  readonly #server: Server;
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #sockets = new Set<Socket>();
  readonly #scripts: Script[] = [];
  readonly #streams = new Arrivals<ScriptedCall>();
  readonly #execs = new Arrivals<ScriptedExec>();
  readonly #scheme: string;
  #port = 0;

  private constructor({ tls }: ScriptedNomadOptions) {
    this.#scheme = tls ? 'https' : 'http';
    this.#server = tls
      ? https.createServer({ ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: true })
      : http.createServer();
    this.#server.keepAliveTimeout = 0; // like Nomad, which never closes an idle connection
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('request', (request, response) => void this.#answer(request, response));
    this.#server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head));
  }

  static async start(options: ScriptedNomadOptions = {}): Promise<ScriptedNomad> {
    const nomad = new ScriptedNomad(options);
    await new Promise<void>((resolve) => nomad.#server.listen(0, '127.0.0.1', resolve));
    nomad.#port = (nomad.#server.address() as AddressInfo).port;
    return nomad;
  }

  /** Where it listens, or listened before it was stopped. */
  get address(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}`;
  }

  /** TCP connections that are open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Answers every request of this method and path with `handler`; the script written last counts. */
  on(method: string, path: string | RegExp, handler: Handler): void {
    this.#scripts.unshift({ method, path, handler, isOnce: false });
  }

  /** Answers one request; several are used up in the order in which they were written, before those of `on`. */
  once(method: string, path: string | RegExp, handler: Handler): void {
    const behind = this.#scripts.findLastIndex((script) => script.isOnce) + 1;
    this.#scripts.splice(behind, 0, { method, path, handler, isOnce: true });
  }

  /** The next request for the event stream that no script answers. */
  nextStream(): Promise<ScriptedCall> {
    return this.#streams.next();
  }

  /** The next exec socket whose upgrade no script answers; it is open. */
  nextExec(): Promise<ScriptedExec> {
    return this.#execs.next();
  }

  /** Resets every connection; the port stays open. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Closes the port and every connection. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#webSockets.close();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined); // clients may leave at any time
    const call = new ScriptedCall(await this.#record(message), response);
    const handler = this.#scriptFor(call.request);
    if (handler) await handler(call);
    else if (call.request.path === '/v1/event/stream') this.#streams.arrive(call);
    else call.reply({ status: 501, body: `no script for ${call.request.method} ${call.request.path}` });
  }

  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => undefined);
    const request = await this.#record(message);
    const handler = this.#scriptFor(request);
    if (handler) {
      const response = new http.ServerResponse(message);
      response.assignSocket(socket as Socket);
      response.shouldKeepAlive = false;
      response.once('finish', () => socket.end());
      await handler(new ScriptedCall(request, response));
    } else if (EXEC_PATH.test(request.path)) {
      this.#webSockets.handleUpgrade(message, socket, head, (webSocket) =>
        this.#execs.arrive(new ScriptedExec(request, webSocket, socket as Socket)),
      );
    } else {
      socket.end('HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n');
    }
  }

  async #record(message: IncomingMessage): Promise<RecordedRequest> {
    const chunks: Buffer[] = [];
    if (message.headers.upgrade === undefined)
      for await (const chunk of message) chunks.push(chunk as Buffer);
    const url = new URL(message.url ?? '/', 'http://nomad');
    const text = Buffer.concat(chunks).toString('utf8');
    const request: RecordedRequest = {
      method: message.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: message.headers,
      text,
      json(): unknown {
        return JSON.parse(text);
      },
    };
    this.requests.push(request);
    return request;
  }

  #scriptFor({ method, path }: RecordedRequest): Handler | undefined {
    const index = this.#scripts.findIndex(
      (script) =>
        script.method === method &&
        (typeof script.path === 'string' ? script.path === path : script.path.test(path)),
    );
    const script = this.#scripts[index];
    if (script?.isOnce) this.#scripts.splice(index, 1);
    return script?.handler;
  }
}

/** What comes in, handed out in order to whoever asks, whichever is first. */
class Arrivals<T> {
  readonly #here: T[] = [];
  readonly #asked: ((item: T) => void)[] = [];

  arrive(item: T): void {
    const ask = this.#asked.shift();
    if (ask) ask(item);
    else this.#here.push(item);
  }

  next(): Promise<T> {
    const item = this.#here.shift();
    return item ? Promise.resolve(item) : new Promise((resolve) => this.#asked.push(resolve));
  }
}

/** An address where nothing listens. */
export async function deadAddress(): Promise<string> {
  const dead = await ScriptedNomad.start();
  await dead.stop();
  return dead.address;
}
