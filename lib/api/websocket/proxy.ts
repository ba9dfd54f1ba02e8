/**
 * Binds the WebSocket of a client to one execution.
 *
 *   running ── exit ──▶ ended ── taken by the connection, close 1000 ──▶ closed
 *      └── the client closes or vanishes: hang-up ─────────────────────────▲
 *
 * What frames mean is the dialect's matter. What the client asks for and the program does not take is bounded: the
 * connection is read no further until it does. Output is bounded by the message queue. A message that is none is
 * refused and ends nothing; the refusals count as what waits until the client has read them.
 *
 * Not here: who may have the socket (upgrade.ts), time limits and killing (execution/).
 */
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import type { Clock, Timer } from '../../base/clock.js';
import type { Logger } from '../../base/log.js';
import type { ProgramSignal } from '../../base/program-signals.js';
import type { ExecutionSink, Exit, PreparedExecution, RunningExecution } from '../../execution/api.js';
import type { ClientRequest, Dialect } from './dialect.js';
import { dialectOf } from './dialect.js';
import { Heartbeat } from './heartbeat.js';
import { MessageQueue } from './message-queue.js';

const INPUT_HIGH_BYTES = 1024 * 1024;
const INPUT_LOW_BYTES = 256 * 1024;
/** What a frame costs here beside its bytes, so that a flood of empty ones is bounded too. */
const FRAME_BYTES = 256;
const NOTHING = Buffer.alloc(0);
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
  readonly #dialect: Dialect;
  readonly #queue: MessageQueue;
  readonly #heartbeat: Heartbeat;
  #state: 'running' | 'ended' | 'closed' = 'running';
  #running: RunningExecution | undefined;
  #startedAtMs: number | undefined;
  #pendingInputBytes = 0;
  #closeTimer: Timer | undefined;

  constructor(options: ProxyOptions) {
    const { socket, connection, clock, execution } = options;
    this.#options = options;
    this.#dialect = dialectOf(socket.protocol);
    this.#queue = new MessageQueue(socket, this.#dialect.start(execution.id));
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
    socket.on('message', (data, isBinary) => this.#onFrame(running, toBuffer(data), isBinary));
    socket.on('pong', () => this.#heartbeat.answered());
    socket.on('ping', () => this.#heartbeat.answered());
    // The close that follows says all that matters.
    socket.on('error', (error) => log.debug('websocket error', { executionId, error }));
    socket.once('close', () => this.#onClose(running));
    this.#heartbeat.start();
    const exited = running.exit.then(
      (exit) => this.#end(exit),
      (error: unknown) => {
        log.error('an execution rejected instead of ending', { executionId, error });
        this.#end({ kind: 'failed', message: 'the execution failed unexpectedly' });
      },
    );
    await Promise.all([closed, exited]);
  }

  started(): void {
    this.#startedAtMs ??= this.#options.clock.monotonicMs();
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
    this.#end({ kind: 'failed', message });
    this.#running?.hangUp();
  }

  /** Drops the connection without a word. */
  destroy(): void {
    this.#options.socket.terminate();
  }

  #end(exit: Exit): void {
    if (this.#state !== 'running') return;
    this.#state = 'ended';
    const nowMs = this.#options.clock.monotonicMs();
    const durationMs = Math.round(nowMs - (this.#startedAtMs ?? nowMs));
    this.#queue.end(this.#dialect.end(exit, durationMs), () => this.#close());
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

  #onFrame(running: RunningExecution, frame: Buffer, isBinary: boolean): void {
    this.#heartbeat.answered();
    if (this.#state !== 'running') return;
    const { socket } = this.#options;
    const cost = frame.length + FRAME_BYTES;
    this.#pendingInputBytes += cost;
    if (this.#pendingInputBytes > INPUT_HIGH_BYTES) socket.pause();
    const taken = (): void => {
      this.#pendingInputBytes -= cost;
      if (socket.isPaused && this.#pendingInputBytes <= INPUT_LOW_BYTES) socket.resume();
    };
    // A program that takes no input any more is told of by its exit.
    this.#carryOut(running, this.#dialect.read(frame, isBinary)).then(taken, taken);
  }

  /** Resolves once there is room for more. */
  #carryOut(running: RunningExecution, request: ClientRequest): Promise<void> {
    switch (request.type) {
      case 'stdin':
        return running.write(request.bytes);
      case 'resize':
        running.resize(request.cols, request.rows);
        return running.write(NOTHING);
      case 'eof':
        running.closeStdin();
        return running.write(NOTHING);
      case 'signal':
        return this.#signal(running, request.data);
      case 'unreadable':
        return this.#refuse(running, request.why);
    }
  }

  async #signal(running: RunningExecution, name: ProgramSignal): Promise<void> {
    try {
      await running.signal(name);
    } catch (error) {
      if (this.#state !== 'running') return; // there is nobody left to be told
      const { log, execution } = this.#options;
      log.warn('a signal may not have reached a program', { executionId: execution.id, signal: name, error });
      await this.#refuse(running, `${name} may not have reached the program; send it again`);
    }
  }

  /** Answers in the order of what the client sent, and not before the start. */
  async #refuse(running: RunningExecution, why: string): Promise<void> {
    await running.write(NOTHING);
    this.#queue.tell({ type: 'refused', data: why });
    await this.#queue.drained();
  }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
