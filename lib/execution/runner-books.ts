import type { RunnerId } from '../base/ids.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { KnownOfRunner, RunnerBookDeps } from './runner-book.js';
import { RunnerBook } from './runner-book.js';

export interface RunnerBooksDeps extends RunnerBookDeps {
  /** What is known of a runner that has no book yet. */
  readonly known?: (runner: ClaimedRunner) => KnownOfRunner;
}

/**
 * The books of the claimed runners, one each, shared by all that runs something there: executions and file transfers.
 * A book is forgotten with its runner.
 */
export class RunnerBooks {
  readonly #deps: RunnerBooksDeps;
  readonly #books = new Map<RunnerId, RunnerBook>();

  constructor(deps: RunnerBooksDeps) {
    this.#deps = deps;
  }

  /** Runners with a book; for tests that look for leaks. */
  get size(): number {
    return this.#books.size;
  }

  /** The book of a runner, opened by the first who asks. */
  of(runner: ClaimedRunner): RunnerBook {
    const known = this.#books.get(runner.id);
    if (known) return known;
    const book = new RunnerBook(this.#deps, runner, this.#deps.known?.(runner));
    if (runner.runnerSignal.aborted) return book;
    this.#books.set(runner.id, book);
    runner.runnerSignal.addEventListener('abort', () => this.#books.delete(runner.id), { once: true });
    return book;
  }
}
