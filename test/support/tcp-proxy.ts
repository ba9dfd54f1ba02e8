import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/**
 * A way to a server that can fail as a network does.
 *
 *   open      passes everything on
 *   silent    as a pulled cable: connections come about and stay, and no byte passes either way until it opens again
 *   refusing  as a stopped server: what was open is reset, what is new is refused
 */
export class TcpProxy implements AsyncDisposable {
  readonly port: number;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<Pair>();
  #server: Server;
  #isSilent = false;

  private constructor(server: Server, port: number, target: URL) {
    this.#server = server;
    this.port = port;
    this.#target = { host: target.hostname, port: Number(target.port) };
    server.on('connection', (client) => this.#accept(client));
  }

  /** Listens on a free port of the loopback address. */
  static async open(target: string): Promise<TcpProxy> {
    const server = await listen(0);
    const address = server.address();
    if (typeof address !== 'object' || address === null) throw new Error('no port');
    return new TcpProxy(server, address.port, new URL(target));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#pairs.size;
  }

  silence(): void {
    this.#isSilent = true;
    for (const pair of this.#pairs) pair.hold();
  }

  async refuse(): Promise<void> {
    this.#server.close();
    this.reset();
    await once(this.#server, 'close');
  }

  /** Resets every connection; new ones are as before. */
  reset(): void {
    for (const pair of this.#pairs) pair.destroy();
  }

  /** Ends the silence or the refusal. */
  async restore(): Promise<void> {
    if (this.#isSilent) {
      this.#isSilent = false;
      for (const pair of this.#pairs) pair.release();
    }
    if (this.#server.listening) return;
    this.#server = await listen(this.port);
    this.#server.on('connection', (client) => this.#accept(client));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    const pair: Pair = new Pair(client, this.#target, () => this.#pairs.delete(pair));
    this.#pairs.add(pair);
    if (this.#isSilent) pair.hold();
    else pair.release();
  }
}

/** A client and, once anything may pass, its connection to the server. */
class Pair {
  readonly #client: Socket;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #onEnd: () => void;
  #upstream: Socket | undefined;
  #isHeld = true;

  constructor(client: Socket, target: { readonly host: string; readonly port: number }, onEnd: () => void) {
    this.#client = client;
    this.#target = target;
    this.#onEnd = onEnd;
    client.pause();
    client.on('error', () => this.destroy()).on('close', () => this.destroy());
  }

  hold(): void {
    this.#isHeld = true;
    this.#client.pause();
    this.#upstream?.pause();
  }

  release(): void {
    this.#isHeld = false;
    if (this.#client.destroyed) return;
    if (!this.#upstream) {
      this.#upstream = connect(this.#target);
      this.#upstream.on('error', () => this.destroy()).on('close', () => this.destroy());
      this.#pass(this.#client, this.#upstream);
      this.#pass(this.#upstream, this.#client);
    }
    this.#client.resume();
    this.#upstream.resume();
  }

  destroy(): void {
    this.#client.destroy();
    this.#upstream?.destroy();
    this.#onEnd();
  }

  #pass(from: Socket, to: Socket): void {
    from.on('data', (chunk: Buffer) => {
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (!this.#isHeld) from.resume();
      });
    });
    from.on('end', () => to.end());
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
