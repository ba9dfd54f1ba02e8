import { openFileSession } from './file-session.js';
import { openPipeSession } from './pipe-session.js';
import type { RunnerBook } from './runner-book.js';
import type { CommandSession, SessionDeps } from './session.js';
import type { SessionFolders } from './session-folders.js';
import type { SessionKind, SessionLease, SessionSource } from './session-source.js';
import { openTerminalSession } from './terminal-session.js';

export interface ColdSessionsDeps extends SessionDeps {
  readonly folders: SessionFolders;
}

const OPEN = { terminal: openTerminalSession, pipe: openPipeSession, files: openFileSession } as const;

/** Sessions that are opened when they are asked for and serve one command. */
export class ColdSessions implements SessionSource {
  readonly #deps: ColdSessionsDeps;

  constructor(deps: ColdSessionsDeps) {
    this.#deps = deps;
  }

  async lease(book: RunnerBook, kind: SessionKind, signal: AbortSignal): Promise<SessionLease> {
    const { folders } = this.#deps;
    const session = await OPEN[kind](this.#deps, {
      runner: book.runner,
      folder: folders.next(),
      keep: false,
      sweeping: book.isSwept ? undefined : folders.names,
      signal,
    });
    book.isSwept = true;
    return { session, release: (how) => endSession(session, how === 'gone') };
  }
}

/** Ends a session for good. */
export async function endSession(session: CommandSession, isRunnerGone: boolean): Promise<void> {
  if (isRunnerGone) session.destroy();
  else await session.close();
}
