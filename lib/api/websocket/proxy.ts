/**
 * The socket of one execution: open as long as that runs.
 *
 *   running ── exit ──▶ ended ── taken by the connection, close 1000 ──▶ closed
 *      └── the client closes or vanishes: hang-up ─────────────────────────▲
 *
 * Not here: who may have the socket (upgrade.ts), what travels on it (execution-link.ts), time limits and killing
 * (execution/).
 */
import type { PreparedExecution } from '../../execution/api.js';
import type { ClientConnectionOptions } from './client-connection.js';
import { ClientConnection, NORMAL_CLOSURE } from './client-connection.js';
import { dialectOf } from './dialect.js';
import { ExecutionLink } from './execution-link.js';

/** Whoever talks to a client on a WebSocket until that is closed. */
export interface SocketProxy {
  /** Serves the client, once. Resolves when the socket is closed and nothing runs for it. Never rejects. */
  run(): Promise<void>;
  /** The service stops: begins nothing any more, lets go on what runs, and closes after it. */
  drain(): void;
  /** Cuts what runs: its client gets `message` as the last word, and the program is ended. */
  interrupt(message: string): void;
  /** Drops the connection without a word. */
  destroy(): void;
}

export interface ProxyOptions extends ClientConnectionOptions {
  readonly execution: PreparedExecution;
}

export class ExecutionProxy implements SocketProxy {
  readonly #options: ProxyOptions;
  readonly #connection: ClientConnection;
  readonly #link: ExecutionLink;

  constructor(options: ProxyOptions) {
    const { socket, clock, log } = options;
    const connection = new ClientConnection(options);
    const speech = dialectOf(socket.protocol);
    const onEnd = (): void => connection.finish(NORMAL_CLOSURE);
    this.#options = options;
    this.#connection = connection;
    this.#link = new ExecutionLink({ connection, speech, clock, log, onEnd });
  }

  async run(): Promise<void> {
    const { socket, execution } = this.#options;
    const dialect = dialectOf(socket.protocol);
    const exited = this.#link.begin(execution);
    const closed = this.#connection.serve({
      frame: (frame, isBinary, cost) => this.#link.take(dialect.read(frame, isBinary), cost),
      closed: () => this.#link.hangUp(),
    });
    await Promise.all([closed, exited]);
  }

  /** Nothing to do: an execution that runs may go on. */
  drain(): void {
    return;
  }

  interrupt(message: string): void {
    this.#link.cut(message);
  }

  destroy(): void {
    this.#connection.destroy();
  }
}
