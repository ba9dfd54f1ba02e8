import type { BookedRun, RunnerBook } from './runner-book.js';
import type { CommandSession } from './session.js';

/**
 * What a session is for: a command with a terminal, one without, or a file operation.
 *
 * A session for files gets all of a command's input at once or none: its request says how many bytes there are.
 */
export type SessionKind = 'terminal' | 'pipe' | 'files';

/** Where sessions come from: opened for the occasion (cold-sessions.ts), or ahead of it. */
export interface SessionSource {
  /** Rejects as `openExec` does. `signal` bounds the opening only. */
  lease(book: RunnerBook, kind: SessionKind, signal: AbortSignal): Promise<SessionLease>;
}

/** A session in the hands of one command. */
export interface SessionLease {
  readonly session: CommandSession;
  /**
   * Lets the session go, once; `run` is what ran in it. Resolves when nothing is left of it that others could mind; never
   * rejects.
   */
  release(how: Release, run: BookedRun): Promise<void>;
}

export type Release =
  /** The command ended by itself, or never began. */
  | 'ended'
  /** It was cut off, and its processes were ended. */
  | 'cut'
  /** The runner is gone, and everything in it. */
  | 'gone';
