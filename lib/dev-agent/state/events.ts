/**
 * The event buffer: the last lines of the event stream, and those who listen.
 *
 * One line is what one change of the state announces of one kind; several lines may share an index. A new listener is
 * first given what the buffer holds from its index on (the nearest line if that index is gone), as Nomad does; there is
 * no way to begin strictly after an index.
 */
export interface AgentEvent {
  readonly topic: 'Job' | 'Evaluation' | 'Allocation' | 'Node';
  readonly type: string;
  readonly key: string;
  readonly namespace: string;
  readonly filterKeys: readonly string[] | null;
  /** The event as JSON text; rendered at the first reader and kept. */
  readonly json: () => string;
}

export interface EventLine {
  readonly index: number;
  readonly events: readonly AgentEvent[];
}

export type EventListener = (line: EventLine) => void;

/** What Nomad holds by default. */
export const BUFFERED_LINES = 100;

export class EventBuffer {
  readonly #lines: EventLine[] = [];
  readonly #listeners = new Set<EventListener>();
  #toLose = 0;

  append(line: EventLine): void {
    if (this.#toLose > 0) {
      this.#toLose -= 1;
      return;
    }
    this.#lines.push(line);
    if (this.#lines.length > BUFFERED_LINES) this.#lines.shift();
    for (const listener of this.#listeners) listener(line);
  }

  /** Lines from `index` on, oldest first; 0 gives all that are held. */
  from(index: number): readonly EventLine[] {
    const start = this.#lines.findIndex((line) => line.index >= index);
    return start < 0 ? this.#lines.slice(-1) : this.#lines.slice(start);
  }

  /** Calls `listener` for every line from now on, until the returned function is called. */
  listen(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** The next `count` lines vanish: no listener and no replay ever sees them. */
  loseNext(count: number): void {
    this.#toLose += count;
  }
}

/** Renders on first use and keeps the text, since many listeners read the same line. */
export function lazyJson(render: () => unknown): () => string {
  let text: string | undefined;
  return () => (text ??= JSON.stringify(render()));
}
