import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface ListenerOptions {
  readonly app: RequestListener;
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/**
 * The listening socket on loopback and every connection of it.
 *
 * Closing breaks all connections off at once and frees the port, so that the next one is refused; opening it again takes
 * the same port. That is what a killed and restarted agent looks like from outside.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** The port, once opened; it stays known while closed. */
  get port(): number {
    return this.#port;
  }

  get isOpen(): boolean {
    return this.#server !== undefined;
  }

  async open(port: number): Promise<void> {
    const server = createServer(this.#options.app);
    server.on('upgrade', this.#options.onUpgrade);
    server.on('connection', (socket) => {
      // Accepted just before it was closed: nobody would end it, and closing waits for every connection.
      if (!server.listening) socket.destroy();
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    // Streams and slow answers are meant to last.
    server.requestTimeout = 0;
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    this.#server = server;
    const address = server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (server) await new Promise((resolve) => server.close(resolve));
  }
}
