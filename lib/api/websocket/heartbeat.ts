import type { Clock, Timer } from '../../base/clock.js';

/** What the heartbeat sees of a connection. */
export interface HeartbeatPeer {
  ping(): void;
  /** Bytes that wait in this process because the connection takes no more. */
  backlogBytes(): number;
  /** Bytes that the connection took so far. */
  sentBytes(): number;
  /** True while nothing is read from the connection, so that no answer can be seen. */
  isPaused(): boolean;
}

export interface HeartbeatOptions {
  readonly peer: HeartbeatPeer;
  readonly clock: Clock;
  readonly intervalMs?: number;
  /** Called once, when two pings in a row stayed without an answer. */
  readonly onGone: () => void;
}

const INTERVAL_MS = 30_000;
const MISSED_LIMIT = 2;

/**
 * Finds out that a peer vanished without closing: pings at an interval, and gives it up when two went unanswered.
 *
 * A slow reader is not gone: its pings wait behind output that it has not read yet. So progress of a backlog counts as
 * an answer. Without a backlog it would not: a vanished peer's connection takes small frames for minutes.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #timer: Timer | undefined;
  #missed = 0;
  #isAnswered = true;
  #backlogBytes = 0;
  #sentBytes = 0;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#arm();
  }

  /** Anything that came from the peer: it is there. */
  answered(): void {
    this.#isAnswered = true;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    const { clock, intervalMs = INTERVAL_MS } = this.#options;
    this.#timer = clock.setTimer(intervalMs, () => this.#beat());
  }

  #beat(): void {
    const { peer, onGone } = this.#options;
    const hasProgress = this.#backlogBytes > 0 && peer.sentBytes() > this.#sentBytes;
    this.#missed = this.#isAnswered || hasProgress || peer.isPaused() ? 0 : this.#missed + 1;
    if (this.#missed >= MISSED_LIMIT) {
      this.stop();
      onGone();
      return;
    }
    this.#isAnswered = false;
    this.#backlogBytes = peer.backlogBytes();
    this.#sentBytes = peer.sentBytes();
    peer.ping();
    this.#arm();
  }
}
