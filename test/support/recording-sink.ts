import type { ExecutionSink } from '../../lib/execution/api.js';

/** A client that keeps what it is told. */
export class RecordingSink implements ExecutionSink {
  readonly events: string[] = [];
  stdout = '';
  stderr = '';
  /** False while the client's buffer is full. */
  room = true;
  readonly #listeners = new Set<() => void>();
  #waiting: (() => void)[] = [];

  started(): void {
    this.events.push('started');
    this.#notify();
  }

  output(stream: 'stdout' | 'stderr', text: string): boolean {
    if (this.events.at(-1) !== stream) this.events.push(stream);
    this[stream] += text;
    this.#notify();
    return this.room;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#notify();
    });
  }

  /** The client reads on. */
  drain(): void {
    this.room = true;
    for (const resume of this.#waiting.splice(0)) resume();
  }

  get drainsAwaited(): number {
    return this.#waiting.length;
  }

  /** Resolves as soon as the condition holds. */
  until(condition: (sink: this) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!condition(this)) return;
        this.#listeners.delete(check);
        resolve();
      };
      this.#listeners.add(check);
      check();
    });
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
