import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:http';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

/** A load balancer that gives each request, and each WebSocket, to the next one. It looks at nothing else. */
export class RoundRobin implements AsyncDisposable {
  /** Base addresses of those behind it; may be changed at any time. */
  targets: readonly string[];
  readonly url: string;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #sockets: Set<Duplex>;
  #turn = 0;

  private constructor(server: Server, targets: readonly string[]) {
    const address = server.address();
    if (typeof address !== 'object' || address === null) throw new Error('the balancer does not listen');
    this.url = `http://127.0.0.1:${address.port}`;
    this.targets = targets;
    this.#server = server;
    this.#agent = new Agent({ keepAlive: true });
    this.#sockets = new Set();
    server.on('request', (req: IncomingMessage, res: ServerResponse) => this.#pass(req, res));
    server.on('upgrade', (req: IncomingMessage, client: Duplex, head: Buffer) =>
      this.#tunnel(req, client, head),
    );
  }

  static async open(targets: readonly string[]): Promise<RoundRobin> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new RoundRobin(server, targets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #next(): URL {
    const target = this.targets[this.#turn % this.targets.length];
    this.#turn += 1;
    if (target === undefined) throw new Error('nobody is behind the balancer');
    return new URL(target);
  }

  #pass(req: IncomingMessage, res: ServerResponse): void {
    const { hostname, port } = this.#next();
    const { method, url: path, headers } = req;
    const out = request({ agent: this.#agent, hostname, port, method, path, headers });
    out.on('error', () => {
      if (res.headersSent) res.destroy();
      else res.writeHead(502).end();
    });
    out.on('response', (answer) => {
      answer.on('error', () => res.destroy());
      res.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(res);
    });
    res.once('close', () => {
      if (!res.writableFinished) out.destroy();
    });
    req.pipe(out);
  }

  #tunnel(req: IncomingMessage, client: Duplex, head: Buffer): void {
    const { hostname, port } = this.#next();
    const server: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const lines = [`${req.method} ${req.url} HTTP/1.1`];
    for (let index = 0; index < req.rawHeaders.length; index += 2) {
      lines.push(`${req.rawHeaders[index]}: ${req.rawHeaders[index + 1]}`);
    }
    server.write([...lines, '', ''].join('\r\n'), 'latin1');
    server.write(head);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
