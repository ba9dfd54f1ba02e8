/**
 * The connections of a server, and which of them are in the middle of something.
 *
 * Node knows them too, but counts one that never sent anything as busy, and cannot tell an upgraded one from others. Of
 * TLS the connection is the encrypted one; the one below it is kept only while the two shake hands.
 */
import type { Server as HttpServer } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export class Connections {
  readonly #open = new Set<Socket>();
  /** Requests in progress by connection; an upgraded one stays until it closes. */
  readonly #busy = new Map<Duplex, number>();
  /** By the address of the other end: the encrypted connection does not tell which one is below it. */
  readonly #handshakes = new Map<string, Socket>();

  /** Keeps account of all that come to the server from now on. */
  watch(server: HttpServer, isEncrypted: boolean): void {
    if (!isEncrypted) {
      server.on('connection', (connection: Socket) => this.#add(connection));
      return;
    }
    server.on('connection', (raw: Socket) => {
      const end = farEnd(raw);
      this.#handshakes.set(end, raw);
      raw.once('close', () => {
        if (this.#handshakes.get(end) === raw) this.#handshakes.delete(end);
      });
    });
    server.on('secureConnection', (connection: Socket) => {
      this.#handshakes.delete(farEnd(connection));
      this.#add(connection);
    });
  }

  /** Open ones. */
  get size(): number {
    return this.#open.size + this.#handshakes.size;
  }

  /** True for one that HTTP may be spoken on. */
  has(connection: Duplex): boolean {
    return connection instanceof Socket && this.#open.has(connection);
  }

  isBusy(connection: Duplex): boolean {
    return this.#busy.has(connection);
  }

  /** A request began on it. */
  begin(connection: Duplex): void {
    this.#busy.set(connection, (this.#busy.get(connection) ?? 0) + 1);
  }

  /** A request ended on it. */
  finish(connection: Duplex): void {
    const left = (this.#busy.get(connection) ?? 0) - 1;
    if (left > 0) this.#busy.set(connection, left);
    else this.#busy.delete(connection);
  }

  /** Resolves once all that are open now have closed. */
  async ended(): Promise<void> {
    const open = [...this.#handshakes.values(), ...this.#open];
    await Promise.all(open.map((each) => new Promise((resolve) => each.once('close', resolve))));
  }

  /** Closes one on which nothing is in progress. */
  closeIfIdle(connection: Duplex): void {
    if (connection instanceof Socket && !this.#busy.has(connection)) connection.destroySoon();
  }

  closeIdle(): void {
    for (const raw of this.#handshakes.values()) raw.destroy();
    for (const connection of this.#open) this.closeIfIdle(connection);
  }

  destroy(): void {
    for (const connection of [...this.#handshakes.values(), ...this.#open]) connection.destroy();
  }

  #add(connection: Socket): void {
    if (this.#open.has(connection)) return; // given back by an upgrade to something else
    this.#open.add(connection);
    connection.once('close', () => {
      this.#open.delete(connection);
      this.#busy.delete(connection);
    });
  }
}

function farEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
