import type { EventSubscription, EventTopic, NomadEvents } from './api.js';
import type { Connection } from './connection.js';
import { EventStream } from './event-stream.js';
import type { Http } from './http.js';

/** `/v1/event/stream`. */
export class Events implements NomadEvents {
  readonly #connection: Connection;
  readonly #http: Http;

  constructor(connection: Connection, http: Http) {
    this.#connection = connection;
    this.#http = http;
  }

  subscribe({ topics, signal }: { topics: readonly EventTopic[]; signal: AbortSignal }): EventSubscription {
    const stream = new EventStream({ connection: this.#connection, http: this.#http, topics, signal });
    stream.open();
    return stream;
  }
}
