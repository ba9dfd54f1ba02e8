import { endSession } from '../../lib/execution/cold-sessions.js';
import { openFileSession } from '../../lib/execution/file-session.js';
import type { RunnerBook } from '../../lib/execution/runner-book.js';
import type { Aftermath, CommandSession, SessionDeps } from '../../lib/execution/session.js';
import type { SessionKind, SessionLease, SessionSource } from '../../lib/execution/session-source.js';

/** One file session that serves one operation after the other for as long as it is clean; for one user at a time. */
export class KeptSession implements SessionSource {
  readonly aftermaths: Aftermath[] = [];
  opened = 0;
  readonly #deps: SessionDeps;
  readonly #folder: () => string;
  #kept: CommandSession | undefined;
  #release: Promise<void> = Promise.resolve();

  constructor(deps: SessionDeps, folder: () => string) {
    this.#deps = deps;
    this.#folder = folder;
  }

  async lease({ runner }: RunnerBook, _kind: SessionKind, signal: AbortSignal): Promise<SessionLease> {
    await this.#release;
    this.#kept ??= await this.#open({
      runner,
      folder: this.#folder(),
      keep: true,
      sweeping: undefined,
      signal,
    });
    const session = this.#kept;
    return {
      session,
      release: (how) => {
        this.#release = this.#settle(session, how === 'ended', how === 'gone');
        return this.#release;
      },
    };
  }

  async close(): Promise<void> {
    await this.#release;
    await this.#kept?.close();
  }

  #open(options: Parameters<typeof openFileSession>[1]): Promise<CommandSession> {
    this.opened += 1;
    return openFileSession(this.#deps, options);
  }

  async #settle(session: CommandSession, isEnded: boolean, isGone: boolean): Promise<void> {
    const aftermath = isEnded ? await session.settle() : 'spent';
    this.aftermaths.push(aftermath);
    if (aftermath === 'clean') return;
    this.#kept = undefined;
    await endSession(session, isGone);
  }
}
