/**
 * The connection of one client with a WebSocket: alive or not, how much of its input is on the way, and its end.
 *
 *   open ── finish: the last message is taken, close frame ──▶ closing ── answered, or not in time ──▶ closed
 *     └── the client closes or vanishes ────────────────────────────────────────────────────────────▲
 *
 * Input that nobody takes is bounded: beyond INPUT_HIGH_BYTES the connection is read no further until little is left.
 */
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import type { Clock, Timer } from '../../base/clock.js';
import type { Logger } from '../../base/log.js';
import { Heartbeat } from './heartbeat.js';
import { Outbox } from './outbox.js';

const INPUT_HIGH_BYTES = 1024 * 1024;
const INPUT_LOW_BYTES = 256 * 1024;
/** What a frame costs here beside its bytes, so that a flood of empty ones is bounded too. */
const FRAME_BYTES = 256;
/** How long a client may take to answer the close frame. */
const CLOSE_MS = 10_000;

/** Close codes of RFC 6455 and the registry that it opens. */
export const NORMAL_CLOSURE = 1000;
export const GOING_AWAY = 1001;
export const SERVICE_RESTART = 1012;

export interface ClientConnectionOptions {
  readonly socket: WebSocket;
  /** The connection below the WebSocket. */
  readonly connection: Socket;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What a connection tells of itself. */
export interface ConnectionEvents {
  /** `cost` is what may be held until the frame has been dealt with. Not called once the connection is closing. */
  frame(frame: Buffer, isBinary: boolean, cost: number): void;
  /** It is closed, once. */
  closed(): void;
}

export class ClientConnection {
  readonly outbox: Outbox;
  readonly #options: ClientConnectionOptions;
  readonly #heartbeat: Heartbeat;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #heldBytes = 0;
  #closeTimer: Timer | undefined;

  constructor(options: ClientConnectionOptions) {
    const { socket, connection, clock } = options;
    this.#options = options;
    this.outbox = new Outbox(socket, connection, clock);
    this.#heartbeat = new Heartbeat({
      clock,
      peer: {
        ping: () => socket.ping(),
        backlogBytes: () => socket.bufferedAmount,
        sentBytes: () => connection.bytesWritten - connection.writableLength,
        isPaused: () => socket.isPaused,
      },
      onGone: () => socket.terminate(),
    });
  }

  /** Listens to the client from now on, once. Resolves when the connection is closed. Never rejects. */
  serve(events: ConnectionEvents): Promise<void> {
    const { socket, log } = this.#options;
    const answered = (): void => this.#heartbeat.answered();
    socket.on('message', (data, isBinary) => {
      answered();
      const frame = toBuffer(data);
      if (this.#state === 'open') events.frame(frame, isBinary, frame.length + FRAME_BYTES);
    });
    socket.on('pong', answered);
    socket.on('ping', answered);
    // The close that follows says all that matters.
    socket.on('error', (error) => log.debug('websocket error', { error }));
    this.#heartbeat.start();
    return new Promise((resolve) => {
      socket.once('close', () => {
        this.#state = 'closed';
        this.#heartbeat.stop();
        this.#closeTimer?.cancel();
        this.outbox.discard();
        events.closed();
        resolve();
      });
    });
  }

  /** Counts input that is on its way; the client is held back while that is much. */
  hold(cost: number): void {
    const { socket } = this.#options;
    this.#heldBytes += cost;
    if (this.#heldBytes > INPUT_HIGH_BYTES && this.#state === 'open') socket.pause();
  }

  /** Takes back what `hold` counted. */
  release(cost: number): void {
    const { socket } = this.#options;
    this.#heldBytes -= cost;
    if (socket.isPaused && this.#heldBytes <= INPUT_LOW_BYTES) socket.resume();
  }

  /** Closes once the client's end has taken all that was sent. `answerMs` is how long it gets to answer. */
  finish(code: number, answerMs = CLOSE_MS): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    const { socket, connection } = this.#options;
    // With nothing before it the last message is taken at once, and the close frame goes with it in one write.
    const isClear = socket.bufferedAmount === 0;
    connection.cork();
    this.outbox.flush();
    if (isClear) this.#close(code, answerMs);
    connection.uncork();
    if (!isClear) this.outbox.whenTaken(() => this.#close(code, answerMs));
  }

  /** Drops the connection without a word. */
  destroy(): void {
    this.#options.socket.terminate();
  }

  #close(code: number, answerMs: number): void {
    const { socket, clock } = this.#options;
    if (this.#state === 'closed') return;
    // Reading may be paused for want of a taker of input; the answer to the close has to be seen.
    socket.resume();
    socket.close(code);
    this.#closeTimer = clock.setTimer(answerMs, () => socket.terminate());
  }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
