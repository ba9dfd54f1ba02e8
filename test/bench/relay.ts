/**
 * Stands between a service and the agent, and passes everything on. It counts the requests, and it can hold the event
 * stream back: what Nomad says meanwhile arrives at once when it lets go.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';

const STREAM = '/v1/event/stream';

export class Relay implements AsyncDisposable {
  readonly #target: string;
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });
  /** Requests by kind, such as `GET /v1/jobs`. */
  readonly #counts = new Map<string, number>();
  #held: Buffer[] | undefined;
  #stream: ServerResponse | undefined;
  #heldEvents = 0;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => this.#pass(request, response));
  }

  static async open(target: string): Promise<Relay> {
    const relay = new Relay(target);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Event streams that were opened, and lists that were begun: each of them once in a good life. */
  get streams(): number {
    return this.#counts.get(`GET ${STREAM}`) ?? 0;
  }

  get lists(): number {
    return this.#counts.get('GET /v1/nodes') ?? 0;
  }

  /** All requests so far. */
  get requests(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  get heldEvents(): number {
    return this.#heldEvents;
  }

  hold(): void {
    this.#held = [];
    this.#heldEvents = 0;
  }

  /** Sends on what was held, in one go. */
  letGo(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#stream?.write(Buffer.concat(held));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await once(this.#server, 'close');
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = request;
    const [path = ''] = url.split('?');
    const kind = `${method} ${path.startsWith('/v1/job/') ? '/v1/job' : path}`;
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    const passed = httpRequest(this.#target + url, { method, headers, agent: this.#agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (path === STREAM) this.#follow(answer, response);
      else answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  }

  #follow(answer: IncomingMessage, response: ServerResponse): void {
    this.#stream = response;
    answer.on('data', (chunk: Buffer) => {
      if (!this.#held) {
        response.write(chunk);
        return;
      }
      this.#held.push(chunk);
      this.#heldEvents += chunk.toString('latin1').split('"Topic":"').length - 1;
    });
    answer.on('close', () => response.destroy());
  }
}
