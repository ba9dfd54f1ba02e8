import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** A TCP connection's way to a server, which a test cuts or blocks. */
export class Wire implements AsyncDisposable {
  readonly url: string;
  /** Connections that were made over it. */
  made = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isFrozen = false;
  #isNextLost = false;

  private constructor(server: Server, target: URL) {
    const address = server.address();
    if (typeof address !== 'object' || address === null) throw new Error('the wire does not listen');
    this.url = `http://127.0.0.1:${address.port}`;
    this.#server = server;
    server.on('connection', (near: Socket) => this.#join(near, target));
  }

  static async open(target: string): Promise<Wire> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Wire(server, new URL(target));
  }

  /** Takes connections and carries nothing any more, as a process that is stopped does. */
  freeze(): void {
    this.#isFrozen = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Resets the next connection as soon as something is said on it. */
  loseNext(): void {
    this.#isNextLost = true;
  }

  /** Resets all connections, as the end of a process does. */
  cut(): void {
    for (const socket of [...this.#pairs].flat()) {
      // One that is ended already cannot be reset, and Node would keep its handle.
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
  }

  /** Takes no connections any more, and cuts those that are there. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #join(near: Socket, { hostname, port }: URL): void {
    this.made += 1;
    if (this.#isNextLost) {
      this.#isNextLost = false;
      near.once('data', () => near.resetAndDestroy());
      return;
    }
    const far = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('error', () => to.destroy());
      from.once('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      from.pipe(to);
      if (this.#isFrozen) from.pause();
    }
  }
}
