/**
 * The one way to a client: all messages of a socket, in their order.
 *
 * Messages of one turn of the event loop leave in one write, and output of one turn, stream and command as one message: a
 * flood costs few frames, and a lone character waits for nothing. Each message becomes text once, when it leaves.
 *
 * Not here: what may follow what (message-queue.ts), who is to blame for silence (heartbeat.ts).
 */
import type { Clock, Timer } from '../../base/clock.js';
import type { PeerMessage, ServerMessage, SessionServerMessage } from '../../protocol/websocket.js';
import { formatServerMessage } from '../../protocol/websocket.js';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;
/** How long a message that can wait does: most commands print something within that time. */
const SOON_MS = 5;
/** What waits for the end of the turn leaves as soon as it is this long. */
const BATCH_LENGTH = 64 * 1024;

export type Stream = 'stdout' | 'stderr';
export type Message = PeerMessage | ServerMessage | SessionServerMessage;

/** The part of a WebSocket that is needed here. */
export interface MessageSocket {
  readonly bufferedAmount: number;
  send(text: string, sent: (error?: Error) => void): void;
}

/** The part of the connection below it that is needed: what is written in between leaves at once. */
export interface Corked {
  cork(): void;
  uncork(): void;
}

/** Output that the next piece may be joined to. */
interface Batch {
  readonly type: Stream;
  readonly id?: string;
  data: string;
}

export class Outbox {
  readonly #socket: MessageSocket;
  readonly #connection: Corked;
  readonly #clock: Clock;
  #turn: (Message | Batch)[] = [];
  /** The last one of the turn, where that is output. */
  #batch: Batch | undefined;
  #turnLength = 0;
  #turnEnd: NodeJS.Immediate | undefined;
  #soon: Timer | undefined;
  #waiting: (() => void)[] = [];
  #taken: (() => void) | undefined;
  #isOpen = true;
  readonly #endTurn = (): void => this.flush();
  readonly #onSent = (): void => {
    if (this.#waiting.length > 0 && this.isLow) this.#release();
    if (this.#socket.bufferedAmount === 0) this.#taken?.();
  };

  constructor(socket: MessageSocket, connection: Corked, clock: Clock) {
    this.#socket = socket;
    this.#connection = connection;
    this.#clock = clock;
  }

  /** True while the client has more to read than it may be behind. */
  get isFull(): boolean {
    return this.#bytes() >= HIGH_BYTES;
  }

  /** Sends a message at the end of this turn. */
  send(message: Message): void {
    if (!this.#isOpen) return;
    this.#turn.push(message);
    this.#batch = undefined;
    this.#turnEnd ??= setImmediate(this.#endTurn);
  }

  /** Sends a message in one write with the next one, or after 5 ms. */
  sendSoon(message: Message): void {
    if (!this.#isOpen) return;
    this.#turn.push(message);
    this.#batch = undefined;
    this.#soon ??= this.#clock.setTimer(SOON_MS, this.#endTurn);
  }

  /** Sends a piece of output at the end of this turn, or now where much waits. */
  output(stream: Stream, text: string, id: string | undefined): void {
    if (!this.#isOpen) return;
    if (this.#batch?.type === stream && this.#batch.id === id) this.#batch.data += text;
    else {
      const batch: Batch = id === undefined ? { type: stream, data: text } : { type: stream, id, data: text };
      this.send(batch);
      this.#batch = batch;
    }
    this.#turnLength += text.length;
    if (this.#turnLength >= BATCH_LENGTH) this.flush();
  }

  /** Sends what waits. */
  flush(): void {
    this.#stopWaiting();
    const messages = this.#turn;
    this.#turn = [];
    this.#batch = undefined;
    this.#turnLength = 0;
    if (messages.length === 0) return;
    this.#connection.cork();
    for (const message of messages) this.#socket.send(formatServerMessage(message), this.#onSent);
    this.#connection.uncork();
  }

  /** Calls back once the connection has taken all that was sent, unless it breaks first. */
  whenTaken(taken: () => void): void {
    if (this.#socket.bufferedAmount === 0) taken();
    else this.#taken = taken;
  }

  /** Resolves when the client has little left to read, or when that no longer matters. */
  drained(): Promise<void> {
    if (this.isLow) return Promise.resolve();
    return new Promise((resolve) => this.whenLow(resolve));
  }

  /** As `drained`; `resolve` may be called when its caller does not care any more. */
  whenLow(resolve: () => void): void {
    this.#waiting.push(resolve);
  }

  get isLow(): boolean {
    return !this.#isOpen || this.#bytes() <= LOW_BYTES;
  }

  /** The client is gone: drops what waits, and all that comes. */
  discard(): void {
    this.#stopWaiting();
    this.#turn = [];
    this.#batch = undefined;
    this.#isOpen = false;
    this.#release();
  }

  #stopWaiting(): void {
    clearImmediate(this.#turnEnd);
    this.#turnEnd = undefined;
    this.#soon?.cancel();
    this.#soon = undefined;
  }

  #bytes(): number {
    return this.#socket.bufferedAmount + this.#turnLength;
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
