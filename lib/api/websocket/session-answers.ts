import type { SessionServerMessage } from '../../protocol/websocket.js';
import type { ClientConnection } from './client-connection.js';
import { seraiV1Speech } from './dialect.js';

/** What a session says of commands that do not run. What a client does not read of it holds that client back. */
export class SessionAnswers {
  readonly #connection: ClientConnection;

  constructor(connection: ClientConnection) {
    this.#connection = connection;
  }

  /** Tells the end of a command that was never begun; `cost` is that of the frame which this answers. */
  fail(id: string, why: string, cost = 0): void {
    this.#tell({ ...seraiV1Speech.end({ kind: 'failed', message: why }, 0), id }, cost);
  }

  /** Says that something was not carried out, which ends nothing. */
  refuse(id: string | undefined, why: string, cost: number): void {
    this.#tell({ type: 'refused', data: why, ...(id === undefined ? {} : { id }) }, cost);
  }

  #tell(message: SessionServerMessage, cost: number): void {
    const { outbox } = this.#connection;
    outbox.send(message);
    if (!outbox.isFull) return;
    this.#connection.hold(cost);
    void outbox.drained().then(() => this.#connection.release(cost));
  }
}
