import type { Request, Response, Router } from 'express';
import type { Clock } from '../../base/clock.js';
import { HttpFailure } from '../failure.js';
import type { AgentEvent, EventLine } from '../state/events.js';
import type { RouteDeps } from './answers.js';
import { namespaceOf, queryValue } from './answers.js';

/**
 * `GET /v1/event/stream`: newline-delimited JSON, not SSE.
 *
 * A heartbeat `{}` at once and every 30 s; then what the event buffer holds from `index` on; then every line as it
 * comes. A reader that does not keep up is cut off, as Nomad does it.
 */
const HEARTBEAT_MS = 30_000;
const MAX_BACKLOG_BYTES = 64 * 1024 * 1024;

type Selection = (event: AgentEvent) => boolean;

/** The streams that are open, so that they can be cut. */
export class EventStreams {
  readonly #clock: Clock;
  readonly #open = new Set<Response>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  addRoutes(router: Router, { cluster }: RouteDeps): void {
    router.get('/v1/event/stream', (request, response) => {
      const selects = selection(request);
      const index = indexOf(request);
      const { events } = cluster().store;
      response.status(200).set('Content-Type', 'application/json');
      const send = (text: string): void => {
        if (response.writableLength > MAX_BACKLOG_BYTES) response.destroy();
        else response.write(`${text}\n`);
      };
      const sendLine = (line: EventLine): void => {
        const chosen = line.events.filter(selects);
        if (chosen.length > 0) {
          send(`{"Index":${line.index},"Events":[${chosen.map((event) => event.json()).join(',')}]}`);
        }
      };
      send('{}');
      for (const line of events.from(index)) sendLine(line);
      const unlisten = events.listen(sendLine);
      const ended = new AbortController();
      this.#open.add(response);
      response.on('close', () => {
        unlisten();
        ended.abort();
        this.#open.delete(response);
      });
      void this.#heartbeats(send, ended.signal);
    });
  }

  get size(): number {
    return this.#open.size;
  }

  /** Ends every stream in the middle, as a broken connection does. */
  cut(): void {
    for (const response of this.#open) response.destroy();
  }

  async #heartbeats(send: (text: string) => void, ended: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(HEARTBEAT_MS, ended);
      if (ended.aborted) return;
      send('{}');
    }
  }
}

function indexOf(request: Request): number {
  const text = queryValue(request, 'index');
  if (text === '') return 0;
  if (!/^\d+$/.test(text)) {
    throw new HttpFailure(
      400,
      `Unable to parse index: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return Number(text);
}

/** Which events a request wants: `topic=Job:7-life` names a topic and a key, either may be `*`. */
function selection(request: Request): Selection {
  const namespace = namespaceOf(request);
  const wanted = new URL(request.originalUrl, 'http://agent').searchParams.getAll('topic').map((text) => {
    const [topic = '', key = '*', ...rest] = text.split(':');
    if (rest.length > 0) {
      const problem = `Invalid key value pair for topic, topic: ${text}`;
      throw new HttpFailure(400, `Invalid topic query: error parsing topics: ${problem}`);
    }
    return { topic, key };
  });
  return (event) => {
    if (namespace !== '*' && event.namespace !== '' && event.namespace !== namespace) return false;
    if (wanted.length === 0) return true;
    return wanted.some(({ topic, key }) => {
      const isTopic = topic === '*' || topic === event.topic;
      return isTopic && (key === '*' || key === event.key || (event.filterKeys?.includes(key) ?? false));
    });
  };
}
