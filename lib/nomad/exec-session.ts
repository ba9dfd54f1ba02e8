import type { WebSocket } from 'ws';
import type { Clock, Timer } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { ExecSession } from './api.js';
import { isDenial } from './errors.js';
import { KEEP_ALIVE_FRAME, parseExecFrame, resizeFrame } from './exec-frames.js';
import { ExecInput } from './exec-input.js';
import type { ExecEnd } from './model.js';

/** Proxies, and Nomad itself, cut quiet sockets after minutes. */
const KEEP_ALIVE_MS = 10_000;
/** How long output may still come after the exit frame while the socket stays open. */
const LATE_OUTPUT_MS = 1_000;
/** Output kept for a handler that is not set yet; beyond it nothing more is read. */
const KEPT_BYTES = 1024 * 1024;

type Stream = 'stdout' | 'stderr';
type OutputHandler = (stream: Stream, chunk: Buffer) => void;

type State =
  | { readonly name: 'open' }
  /** The exit is known; Nomad may still have output under way. */
  | { readonly name: 'exiting'; readonly exitCode: number }
  | { readonly name: 'ended' };

export interface ExecSessionOptions {
  readonly socket: WebSocket;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tty: boolean;
  /** Called once, when the session is over. */
  readonly onEnd: () => void;
}

/**
 * One exec over an open WebSocket.
 *
 *   open ── exit frame ──▶ exiting ── close, or 1 s without output ──▶ ended (exited)
 *    └──── close, error, destroy, a frame that cannot be read ───────▶ ended (closed)
 *
 * Invariant: an exit is reported only where Nomad sent one, and once it did no way of losing the socket turns it into
 * a failure. Whatever comes, `end` resolves once and nothing is thrown where nobody waits.
 */
export class WebSocketExecSession implements ExecSession {
  readonly end: Promise<ExecEnd>;
  readonly #options: ExecSessionOptions;
  readonly #input: ExecInput;
  #resolveEnd: (end: ExecEnd) => void = () => undefined;
  #state: State = { name: 'open' };
  #handler: OutputHandler | undefined;
  #kept: [Stream, Buffer][] = [];
  #keptBytes = 0;
  #paused = false;
  #socketError = 'the connection was lost';
  #keepAlive: Timer | undefined;
  #grace: Timer | undefined;

  constructor(options: ExecSessionOptions) {
    this.#options = options;
    const { socket } = options;
    this.end = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
    this.#input = new ExecInput({
      get bufferedAmount() {
        return socket.bufferedAmount;
      },
      send: (frame, done) => socket.send(frame, done),
    });
    socket.on('message', (data) => this.#receive(data));
    socket.on('error', (error) => {
      this.#socketError = error.message; // `close` follows
    });
    // 1006 stands for a socket that ended without a close frame, hence without a reason.
    socket.on('close', (code, reason) =>
      this.#finish(code, code === 1006 ? this.#socketError : reason.toString()),
    );
    this.#armKeepAlive();
  }

  onOutput(handler: OutputHandler): void {
    this.#handler = handler;
    const kept = this.#kept;
    this.#kept = [];
    this.#keptBytes = 0;
    for (const [stream, chunk] of kept) this.#deliver(stream, chunk);
    this.#applyPause();
  }

  write(chunk: Uint8Array): Promise<void> {
    return this.#input.write(chunk);
  }

  closeStdin(): void {
    this.#input.close();
  }

  resize(columns: number, rows: number): void {
    if (this.#options.tty) this.#send(resizeFrame(columns, rows));
  }

  pause(): void {
    this.#paused = true;
    this.#applyPause();
  }

  resume(): void {
    this.#paused = false;
    this.#applyPause();
  }

  destroy(): void {
    this.#finish(1006, 'dropped by this side');
  }

  #receive(data: unknown): void {
    if (this.#state.name === 'ended') return;
    const frame = parseExecFrame(Buffer.isBuffer(data) ? data : Buffer.alloc(0));
    switch (frame.kind) {
      case 'output':
        this.#armGrace();
        this.#deliver(frame.stream, frame.data);
        break;
      case 'exited':
        // The first exit counts.
        if (this.#state.name === 'open') this.#state = { name: 'exiting', exitCode: frame.exitCode };
        this.#armGrace();
        break;
      case 'broken':
        this.#fail('Nomad sent a frame that cannot be read');
        break;
      case 'other':
        break;
    }
  }

  #deliver(stream: Stream, chunk: Buffer): void {
    if (!this.#handler) {
      this.#kept.push([stream, chunk]);
      this.#keptBytes += chunk.length;
      this.#applyPause();
      return;
    }
    try {
      this.#handler(stream, chunk);
    } catch (error) {
      this.#options.log.error('the reader of an exec failed', { error });
      this.#fail('the reader of the output failed');
    }
  }

  /** Output is missing or cannot be trusted from here on, so even a known exit would be half the truth. */
  #fail(reason: string): void {
    if (this.#state.name === 'ended') return;
    this.#state = { name: 'open' };
    this.#options.log.warn('an exec socket was dropped', { reason });
    this.#finish(1007, reason);
  }

  #applyPause(): void {
    if (this.#state.name === 'ended') return;
    const { socket } = this.#options;
    if (this.#isHeld()) socket.pause();
    else socket.resume();
    this.#armGrace();
  }

  #isHeld(): boolean {
    return this.#paused || this.#keptBytes > KEPT_BYTES;
  }

  /** Counts the grace anew; not while nothing is read, since output may then wait in the socket. */
  #armGrace(): void {
    this.#grace?.cancel();
    if (this.#state.name !== 'exiting' || this.#isHeld()) return;
    this.#grace = this.#options.clock.setTimer(LATE_OUTPUT_MS, () =>
      this.#finish(1006, 'left open by Nomad'),
    );
  }

  #armKeepAlive(): void {
    this.#keepAlive = this.#options.clock.setTimer(KEEP_ALIVE_MS, () => {
      this.#send(KEEP_ALIVE_FRAME);
      this.#armKeepAlive();
    });
  }

  /** A frame that cannot be sent any more needs no handling: `close` tells the end. */
  #send(frame: string): void {
    if (this.#state.name !== 'ended') this.#options.socket.send(frame, () => undefined);
  }

  #finish(code: number, reason: string): void {
    const state = this.#state;
    if (state.name === 'ended') return;
    this.#state = { name: 'ended' };
    this.#keepAlive?.cancel();
    this.#grace?.cancel();
    this.#options.socket.terminate();
    this.#input.abandon();
    if (isDenial(reason)) {
      this.#options.log.error('Nomad refused an exec: its token lacks a capability', { reason });
    }
    this.#resolveEnd(
      state.name === 'exiting'
        ? { kind: 'exited', exitCode: state.exitCode }
        : { kind: 'closed', code, reason },
    );
    this.#options.onEnd();
  }
}
