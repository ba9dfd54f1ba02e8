import { orAbort, reasonOf } from '../base/abort.js';
import type { Timer } from '../base/clock.js';
import { hasCode, ServiceError } from '../base/errors.js';
import type { EventSubscription, EventTopic } from './api.js';
import type { Connection } from './connection.js';
import { fromFailure } from './errors.js';
import { decodeEventLine, endOfStream } from './event-line.js';
import { EventQueue } from './event-queue.js';
import type { Http } from './http.js';
import { LineSplitter } from './ndjson.js';
import { readRefusal } from './refusal.js';
import { Watchdog } from './watchdog.js';

/** Far above what a burst brings. */
const HIGH_WATER_EVENTS = 200_000;
/** Nomad may keep its response headers back until something happens; then the request counts as received after this. */
const HEADER_GRACE_MS = 500;

const CALL = { method: 'GET', path: '/v1/event/stream' } as const;

export interface EventStreamOptions {
  readonly connection: Connection;
  readonly http: Http;
  readonly topics: readonly EventTopic[];
  readonly signal: AbortSignal;
  /** Events in the queue above which nothing more is read. Default 200,000: for a consumer that hangs. */
  readonly highWater?: number;
}

/**
 * Nomad's event stream: one long response of newline-delimited JSON.
 *
 * Turns `GET /v1/event/stream` into an async iterator of batches of typed events, one batch for each line that is no
 * heartbeat. Reading goes on whether or not somebody iterates, since a slow reader blocks Nomad's own handler; only a
 * very long queue holds the socket back.
 *
 * Invariant: the iterator yields a gap-free run of events or throws. A gap cannot be seen from inside the stream, so
 * after a throw the caller lists again.
 *
 * Not here: what an event means for a runner; retry and delay. A stream that fails only makes the next server the
 * first to be asked.
 */
export class EventStream implements EventSubscription {
  readonly opened: Promise<void>;
  readonly #options: EventStreamOptions;
  readonly #queue: EventQueue;
  readonly #watchdog: Watchdog;
  /** Cuts the stream from inside: silence, a consumer that leaves. */
  readonly #cut = new AbortController();
  #resolveOpened: () => void = () => undefined;
  #rejectOpened: (error: ServiceError) => void = () => undefined;
  #headerGrace: Timer | undefined;

  constructor(options: EventStreamOptions) {
    const { clock, heartbeatTimeoutMs: limitMs } = options.connection;
    this.#options = options;
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpened = resolve;
      this.#rejectOpened = reject;
    });
    this.opened.catch(() => undefined); // who only iterates learns of the failure there
    this.#queue = new EventQueue({
      highWater: options.highWater ?? HIGH_WATER_EVENTS,
      onLeave: () => this.#cut.abort(new ServiceError('STOPPED', 'the event stream was left')),
    });
    const silence = `the event stream was silent for ${limitMs / 1000} s`;
    this.#watchdog = new Watchdog({
      clock,
      limitMs,
      onSilent: () => this.#cut.abort(new ServiceError('NOMAD_UNREACHABLE', silence)),
    });
  }

  [Symbol.asyncIterator](): EventQueue {
    return this.#queue;
  }

  /** Begins to read; everything that follows is told by `opened` and the iterator. */
  open(): void {
    const { signal, connection } = this.#options;
    void this.#run(AbortSignal.any([signal, connection.stopSignal, this.#cut.signal]));
  }

  /** Reads until the end, whatever it is. Never rejects. */
  async #run(signal: AbortSignal): Promise<void> {
    const { connection, signal: callerSignal } = this.#options;
    const close = (): void => this.#queue.close();
    callerSignal.addEventListener('abort', close, { once: true });
    let giveBack: (() => void) | undefined;
    try {
      giveBack = await connection.slot(CALL, signal);
      await this.#follow(connection.addresses.first, signal);
    } catch (error) {
      const failure = signal.aborted ? reasonOf(signal) : asServiceError(error);
      this.#rejectOpened(failure);
      if (callerSignal.aborted) this.#queue.close();
      else this.#queue.fail(failure);
    } finally {
      callerSignal.removeEventListener('abort', close);
      this.#headerGrace?.cancel();
      this.#watchdog.stop();
      giveBack?.();
    }
  }

  /** Throws when the stream is over: it has no good end. */
  async #follow(address: URL, signal: AbortSignal): Promise<never> {
    try {
      return await this.#read(address, signal);
    } catch (error) {
      const failure = signal.aborted ? reasonOf(signal) : asServiceError(error);
      if (hasCode(failure, 'NOMAD_UNREACHABLE', 'NOMAD_OVERLOADED')) {
        this.#options.connection.addresses.failed(address, failure.message);
      }
      throw failure;
    }
  }

  async #read(address: URL, signal: AbortSignal): Promise<never> {
    const { connection, http, topics } = this.#options;
    this.#watchdog.start();
    const query = { topic: topics.map((topic) => `${topic}:*`) };
    const onSent = (): void => {
      this.#headerGrace = connection.clock.setTimer(HEADER_GRACE_MS, this.#resolveOpened);
    };
    const response = await http.open(address, { ...CALL, query }, { signal, onSent });
    this.#headerGrace?.cancel();
    if (response.status !== 200) throw await readRefusal(CALL, response.status, response.data);
    this.#resolveOpened();
    const lines = new LineSplitter();
    for await (const chunk of response.data) {
      this.#watchdog.touch();
      for (const line of lines.push(Buffer.from(chunk))) {
        const batch = decodeEventLine(line);
        if (batch.length > 0) this.#queue.push(batch);
      }
      if (this.#queue.isFull) await this.#waitForRoom(signal);
    }
    throw endOfStream(lines.rest());
  }

  /** Silence means nothing while nobody reads, so the watchdog rests. */
  async #waitForRoom(signal: AbortSignal): Promise<void> {
    this.#watchdog.stop();
    await orAbort(this.#queue.room(), signal);
    this.#watchdog.start();
  }
}

function asServiceError(error: unknown): ServiceError {
  return error instanceof ServiceError ? error : fromFailure(CALL, error);
}
