/**
 * The one queue of messages to the client of an execution.
 *
 * Output of one turn of the event loop and one stream leaves as one message: a flood costs few frames, and a lone
 * character waits for nothing. Invariants: `start` is first, messages keep their order, nothing follows the end.
 * `output` says false while the client has more than HIGH_BYTES still to read; `drained` resolves below LOW_BYTES.
 *
 * Not here: what an exit means in messages (dialect.ts), who is to blame for silence (heartbeat.ts).
 */
import type { PeerMessage, ServerMessage } from '../../protocol/websocket.js';
import { formatServerMessage } from '../../protocol/websocket.js';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;
/** A batch is sent as soon as it is this long. */
const BATCH_LENGTH = 64 * 1024;

type Message = PeerMessage | ServerMessage;
type Stream = 'stdout' | 'stderr';

/** The part of a WebSocket that the queue needs. */
export interface MessageSocket {
  readonly bufferedAmount: number;
  send(text: string, sent: (error?: Error) => void): void;
}

export class MessageQueue {
  readonly #socket: MessageSocket;
  readonly #first: Message;
  #batch: { readonly stream: Stream; text: string } | undefined;
  #flushing: NodeJS.Immediate | undefined;
  #waiting: (() => void)[] = [];
  #state: 'new' | 'started' | 'ended' = 'new';

  /** `first` is the message that `start` sends. */
  constructor(socket: MessageSocket, first: Message) {
    this.#socket = socket;
    this.#first = first;
  }

  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'started';
    this.#send(this.#first);
  }

  /** False when the client's buffer is full. After the end everything is dropped, and true. */
  output(stream: Stream, text: string): boolean {
    if (this.#state === 'ended') return true;
    this.start();
    if (text !== '') this.#add(stream, text);
    return this.#waitingBytes() < HIGH_BYTES;
  }

  /** Says something beside the output, in its place; nothing after the end. */
  tell(message: Message): void {
    if (this.#state === 'ended') return;
    this.start();
    this.#flush();
    this.#send(message);
  }

  /** Resolves when the client's buffer is low again, or when it no longer matters. */
  drained(): Promise<void> {
    if (this.#state === 'ended' || this.#waitingBytes() <= LOW_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Sends the last message; `sent` is called when the connection has taken everything. Later calls do nothing. */
  end(message: Message, sent: () => void): void {
    if (this.#state === 'ended') return;
    this.start();
    this.#flush();
    this.#state = 'ended';
    this.#socket.send(formatServerMessage(message), () => sent());
    this.#release();
  }

  /** The client is gone: drops what waits. */
  discard(): void {
    clearImmediate(this.#flushing);
    this.#batch = undefined;
    this.#state = 'ended';
    this.#release();
  }

  #add(stream: Stream, text: string): void {
    if (this.#batch?.stream === stream) this.#batch.text += text;
    else {
      this.#flush();
      this.#batch = { stream, text };
      this.#flushing = setImmediate(() => this.#flush());
    }
    if (this.#batch.text.length >= BATCH_LENGTH) this.#flush();
  }

  #flush(): void {
    clearImmediate(this.#flushing);
    const batch = this.#batch;
    if (!batch) return;
    this.#batch = undefined;
    this.#send({ type: batch.stream, data: batch.text });
  }

  #send(message: Message): void {
    this.#socket.send(formatServerMessage(message), () => {
      if (this.#waiting.length > 0 && this.#waitingBytes() <= LOW_BYTES) this.#release();
    });
  }

  #waitingBytes(): number {
    return this.#socket.bufferedAmount + (this.#batch?.text.length ?? 0);
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
