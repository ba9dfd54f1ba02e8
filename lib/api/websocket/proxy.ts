/**
 * Binds the WebSocket of a client to one execution.
 *
 *   running ── exit ──▶ ended ── taken by the connection, close 1000 ──▶ closed
 *      └── the client closes or vanishes: hang-up ─────────────────────────▲
 *
 * Frames of the client, text or binary, are input as they stand. Input that the program does not take is bounded: the
 * connection is read no further until it does. Output is bounded by the message queue.
 *
 * Not here: who may have the socket (upgrade.ts), time limits and killing (execution/).
 */
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import type { Clock, Timer } from '../../base/clock.js';
import type { Logger } from '../../base/log.js';
import type { ExecutionSink, PreparedExecution, RunningExecution } from '../../execution/api.js';
import type { ServerMessage } from '../../protocol/websocket.js';
import { exitMessage } from './exit-message.js';
import { Heartbeat } from './heartbeat.js';
import { MessageQueue } from './message-queue.js';

const INPUT_HIGH_BYTES = 1024 * 1024;
const INPUT_LOW_BYTES = 256 * 1024;
/** How long a client may take to answer the close frame. */
const CLOSE_MS = 10_000;
/** Close codes of RFC 6455. */
const NORMAL_CLOSURE = 1000;

export interface ProxyOptions {
  readonly socket: WebSocket;
  /** The connection below the WebSocket. */
  readonly connection: Socket;
  readonly execution: PreparedExecution;
  readonly clock: Clock;
  readonly log: Logger;
}

export class ExecutionProxy implements ExecutionSink {
  readonly #options: ProxyOptions;
  readonly #queue: MessageQueue;
  readonly #heartbeat: Heartbeat;
  #state: 'running' | 'ended' | 'closed' = 'running';
  #running: RunningExecution | undefined;
  #pendingInputBytes = 0;
  #closeTimer: Timer | undefined;

  constructor(options: ProxyOptions) {
    const { socket, connection, clock } = options;
    this.#options = options;
    this.#queue = new MessageQueue(socket);
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

  /** Runs the execution, once. Resolves when it has ended and the socket is closed. Never rejects. */
  async run(): Promise<void> {
    const { socket, execution, log } = this.#options;
    const { id: executionId } = execution;
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const running = execution.run(this);
    this.#running = running;
    socket.on('message', (data) => this.#onInput(running, data));
    socket.on('pong', () => this.#heartbeat.answered());
    socket.on('ping', () => this.#heartbeat.answered());
    // The close that follows says all that matters.
    socket.on('error', (error) => log.debug('websocket error', { executionId, error }));
    socket.once('close', () => this.#onClose(running));
    this.#heartbeat.start();
    const exited = running.exit.then(
      (exit) => this.#end(exitMessage(exit)),
      (error: unknown) => {
        log.error('an execution rejected instead of ending', { executionId, error });
        this.#end({ type: 'error', data: 'the execution failed unexpectedly' });
      },
    );
    await Promise.all([closed, exited]);
  }

  started(): void {
    this.#queue.start();
  }

  output(stream: 'stdout' | 'stderr', text: string): boolean {
    return this.#queue.output(stream, text);
  }

  drained(): Promise<void> {
    return this.#queue.drained();
  }

  /** Cuts a running execution: its client gets `message` as the last one, its program is ended. */
  interrupt(message: string): void {
    if (this.#state !== 'running') return;
    this.#end({ type: 'error', data: message });
    this.#running?.hangUp();
  }

  /** Drops the connection without a word. */
  destroy(): void {
    this.#options.socket.terminate();
  }

  #end(message: ServerMessage): void {
    if (this.#state !== 'running') return;
    this.#state = 'ended';
    this.#queue.end(message, () => this.#close());
  }

  #close(): void {
    const { socket, clock } = this.#options;
    if (this.#state === 'closed') return;
    // Reading may be paused for want of a taker of input; the answer to the close has to be seen.
    socket.resume();
    socket.close(NORMAL_CLOSURE);
    this.#closeTimer = clock.setTimer(CLOSE_MS, () => socket.terminate());
  }

  #onClose(running: RunningExecution): void {
    const wasRunning = this.#state === 'running';
    this.#state = 'closed';
    this.#heartbeat.stop();
    this.#closeTimer?.cancel();
    this.#queue.discard();
    if (wasRunning) running.hangUp();
  }

  #onInput(running: RunningExecution, data: RawData): void {
    this.#heartbeat.answered();
    if (this.#state !== 'running') return;
    const { socket } = this.#options;
    const chunk = toBuffer(data);
    this.#pendingInputBytes += chunk.length;
    if (this.#pendingInputBytes > INPUT_HIGH_BYTES) socket.pause();
    const taken = (): void => {
      this.#pendingInputBytes -= chunk.length;
      if (socket.isPaused && this.#pendingInputBytes <= INPUT_LOW_BYTES) socket.resume();
    };
    running.write(chunk).then(taken, taken); // a program that takes no input any more is told of by its exit
  }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
