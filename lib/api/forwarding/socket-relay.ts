/**
 * The WebSocket of a client whose runner another replica has: bytes in both directions, as they are, after the 101.
 *
 *   relaying ── the owner closes it, or the client ──▶ ended by them, byte for byte
 *      └── the owner is lost, or this replica stops: at the end of a message, the one message that ends it, close ──▶ ended
 *
 * The frames of the owner are followed, not touched (server-frames.ts): that is how the relay knows which command runs, and
 * where a message of its own may stand. Each side is read at the pace of the other.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.js';
import type { Cluster, Replica } from '../../cluster/api.js';
import { SERAI_V1 } from '../../protocol/subprotocols.js';
import { GOING_AWAY, NORMAL_CLOSURE, SERVICE_RESTART } from '../websocket/client-connection.js';
import type { SocketProxy } from '../websocket/proxy.js';
import { answerHeaders } from './hop-headers.js';
import { watchOwner } from './owner-watch.js';
import { RelayedCommands } from './relayed-commands.js';
import { closeFrame, ServerFrames, textFrame } from './server-frames.js';

/** Owners ping every 30 s. One that counts as dead and is silent for longer is no more. */
const SILENCE_MS = 35_000;
/** How long a client may take to close its end after the last word. */
const CLOSE_MS = 1000;
const OWNER_LOST = 'the replica that ran the command was lost';

export interface SocketRelayOptions {
  readonly client: Socket;
  /** What the client sent after its handshake. */
  readonly clientHead: Buffer;
  readonly owner: Replica;
  readonly connection: Socket;
  /** The owner's 101, and what came after it. */
  readonly response: IncomingMessage;
  readonly ownerHead: Buffer;
  readonly kind: 'execution' | 'session';
  readonly cluster: Cluster;
  readonly clock: Clock;
}

/** Why the relay ends the socket itself. */
interface Ending {
  readonly code: number;
  /** For the command that runs. */
  readonly message: string;
}

export class SocketRelay implements SocketProxy {
  readonly #options: SocketRelayOptions;
  readonly #commands: RelayedCommands;
  readonly #frames: ServerFrames;
  #isDraining = false;
  /** Waits for the end of the message that is on its way. */
  #ending: Ending | undefined;
  #hasEnded = false;
  #closeTimer: Timer | undefined;

  constructor(options: SocketRelayOptions) {
    this.#options = options;
    const isSeraiV1 = options.response.headers['sec-websocket-protocol'] === SERAI_V1;
    this.#commands = new RelayedCommands({ ...options, isSeraiV1 });
    this.#frames = new ServerFrames((text) => this.#commands.told(text));
  }

  async run(): Promise<void> {
    const { client, clientHead, owner, connection, ownerHead, cluster, clock } = this.#options;
    const unwatch = watchOwner({
      cluster,
      owner: owner.id,
      clock,
      silenceMs: SILENCE_MS,
      connection: () => connection,
      onDead: () => connection.destroy(),
    });
    client.setNoDelay(true);
    // The close that follows says all that matters.
    client.on('error', () => undefined);
    connection.on('error', () => undefined);
    client.write(this.#handshake());
    connection.on('data', (chunk: Buffer) => this.#fromOwner(chunk));
    client.on('drain', () => connection.resume());
    connection.once('close', () => this.#ownerLeft());
    if (ownerHead.length > 0) this.#fromOwner(ownerHead);
    if (clientHead.length > 0) connection.write(clientHead);
    client.pipe(connection);
    await new Promise<void>((resolve) => {
      client.once('close', resolve);
      if (client.destroyed) resolve();
    });
    unwatch();
    this.#closeTimer?.cancel();
    connection.destroy();
  }

  /** An execution may go on to its end; a session is closed as soon as none of its commands runs. */
  drain(): void {
    this.#isDraining = true;
    this.#endIdleSession();
  }

  interrupt(message: string): void {
    this.#endWith({ code: this.#options.kind === 'session' ? GOING_AWAY : NORMAL_CLOSURE, message });
  }

  destroy(): void {
    this.#options.client.destroy();
  }

  #handshake(): Buffer {
    const { response } = this.#options;
    const fields = answerHeaders(response);
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    for (let index = 0; index < fields.length; index += 2)
      lines.push(`${fields[index]}: ${fields[index + 1]}`);
    return Buffer.from([...lines, '', ''].join('\r\n'), 'latin1');
  }

  #fromOwner(chunk: Buffer): void {
    if (this.#hasEnded) return;
    const { client, connection } = this.#options;
    this.#frames.push(chunk);
    if (!client.write(chunk)) connection.pause();
    if (this.#ending) this.#endWith(this.#ending);
    else this.#endIdleSession();
  }

  #endIdleSession(): void {
    if (!this.#isDraining || this.#options.kind !== 'session' || this.#commands.isRunning) return;
    this.#endWith({ code: GOING_AWAY, message: 'the service is stopping' });
  }

  #ownerLeft(): void {
    const { client, kind } = this.#options;
    if (this.#hasEnded) return;
    if (!this.#frames.hasClosed && this.#frames.isBetween) {
      this.#endWith({ code: kind === 'session' ? SERVICE_RESTART : NORMAL_CLOSURE, message: OWNER_LOST });
    } else if (this.#frames.hasClosed) this.#close();
    // In the middle of a message nothing can be said any more.
    else client.destroy();
  }

  #endWith(ending: Ending): void {
    const { client, connection } = this.#options;
    if (this.#hasEnded || this.#frames.hasClosed) return;
    this.#ending = ending;
    if (!this.#frames.isBetween) return;
    this.#hasEnded = true;
    client.unpipe(connection);
    connection.destroy();
    const end = this.#commands.end(ending.message);
    if (end !== undefined) client.write(textFrame(end));
    client.write(closeFrame(ending.code));
    this.#close();
  }

  /** Ends this side; what the client still sends is dropped. */
  #close(): void {
    const { client, connection, clock } = this.#options;
    this.#hasEnded = true;
    client.unpipe(connection);
    client.resume();
    client.end();
    this.#closeTimer = clock.setTimer(CLOSE_MS, () => client.destroy());
  }
}
