import type { RunnerId } from '../base/ids.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { KillDeps } from './kill.js';
import { RunnerBook } from './runner-book.js';

/**
 * The books of the claimed runners, one each, shared by all that runs something there: executions and file transfers.
 * A book is forgotten with its runner.
 */
export class RunnerBooks {
  readonly #deps: KillDeps;
  readonly #books = new Map<RunnerId, RunnerBook>();

  constructor(deps: KillDeps) {
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
    const book = new RunnerBook(this.#deps, runner);
    if (runner.runnerSignal.aborted) return book;
    this.#books.set(runner.id, book);
    runner.runnerSignal.addEventListener('abort', () => this.#books.delete(runner.id), { once: true });
    return book;
  }
}
