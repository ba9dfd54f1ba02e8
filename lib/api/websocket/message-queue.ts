/**
 * The messages of one execution, on their way to its client.
 *
 * Invariants: `start` is first, messages keep their order, nothing follows the end. `output` says false while the
 * client has too much left to read; `drained` resolves when little is left, or when it no longer matters.
 *
 * Not here: when messages leave (outbox.ts), what an exit means in messages (dialect.ts).
 */
import type { PeerMessage, ServerMessage } from '../../protocol/websocket.js';
import type { Message, Outbox, Stream } from './outbox.js';

export class MessageQueue {
  readonly #outbox: Outbox;
  readonly #id: string | undefined;
  #waiting: (() => void)[] = [];
  #first: PeerMessage | ServerMessage | undefined;
  #hasEnded = false;

  /** `id` goes with every message, on a socket that several commands share. */
  constructor(outbox: Outbox, id?: string) {
    this.#outbox = outbox;
    this.#id = id;
  }

  /** Says which message has to come before all others; without one nothing has. */
  beginWith(first: PeerMessage | ServerMessage): void {
    this.#first = first;
  }

  /** Sends the first message, unless it was sent: with what follows it, or within a few milliseconds. */
  start(): void {
    const first = this.#first;
    if (!first || this.#hasEnded) return;
    this.#first = undefined;
    this.#outbox.sendSoon(this.#named(first));
  }

  /** False when the client's buffer is full. After the end everything is dropped, and true. */
  output(stream: Stream, text: string): boolean {
    if (this.#hasEnded) return true;
    this.start();
    if (text !== '') this.#outbox.output(stream, text, this.#id);
    return !this.#outbox.isFull;
  }

  /** Says something beside the output, in its place; nothing after the end. */
  tell(message: PeerMessage | ServerMessage): void {
    if (this.#hasEnded) return;
    this.start();
    this.#outbox.send(this.#named(message));
  }

  /** Resolves when the client has little left to read, or when it no longer matters. */
  drained(): Promise<void> {
    if (this.#hasEnded || this.#outbox.isLow) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#outbox.whenLow(resolve);
    });
  }

  /** Says the last message. Later calls do nothing. */
  end(message: PeerMessage | ServerMessage): void {
    if (this.#hasEnded) return;
    this.tell(message);
    this.discard();
  }

  /** The client is gone, or has its end: nothing is said any more. */
  discard(): void {
    this.#hasEnded = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #named(message: PeerMessage | ServerMessage): Message {
    const id = this.#id;
    return id === undefined ? message : { ...message, id };
  }
}
