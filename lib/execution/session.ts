import type { ArmedFor, CommandRequest } from '../shell/request.js';
import type { Refusal, RunnerProcess, RunnerUser } from '../shell/frames.js';
import type { Nomad } from '../nomad/api.js';
import type { ExecEnd } from '../nomad/model.js';
import type { Clock } from '../base/clock.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type { SessionNames } from '../shell/sweep.js';

/**
 * One or more execs in a runner, open and ready to run a command: the protocol with the scripts of lib/shell, and
 * nothing of limits, clients or leftovers (run.ts).
 */
export interface CommandSession {
  /** The shell in the runner that starts the commands; undefined until it reported. */
  readonly root: RunnerProcess | undefined;
  /** Resolves when the session can run nothing any more: an exec of it ended. */
  readonly ended: Promise<void>;
  /** Runs a command, when the one before has settled. Resolves once, and never rejects; no event comes afterwards. */
  run(request: CommandRequest, events: CommandEvents): Promise<CommandEnd>;
  /** Input for the command that runs. Resolves when there is room for more. */
  write(chunk: Uint8Array): Promise<void>;
  closeStdin(): void;
  resize(columns: number, rows: number): void;
  /** Stops and restarts reading what the command prints. */
  pause(): void;
  resume(): void;
  /** Gives out bytes that are kept back because an end may begin with them; for a command that is being cut off. */
  flush(): void;
  /**
   * Resolves when the runner has put everything in order after a command: whether the session can run another one. To be
   * asked after `run` resolved, and again after `suspect`, once those processes are gone. Bounded; never rejects.
   */
  settle(): Promise<Aftermath>;
  /**
   * Makes ready what the next command is expected to need, where the session can do that; it is to be clean. Another
   * command than the expected one is run all the same, a little later. `token` is a new one.
   */
  arm?(token: string, expected: ArmedFor): void;
  /** Ends what the session has in the runner, then the sockets. Bounded; never rejects. */
  close(): Promise<void>;
  /** Drops the sockets at once; for a runner that is gone. */
  destroy(): void;
}

export interface CommandEvents {
  /** The command begins; comes before its output. */
  started(): void;
  output(stream: 'stdout' | 'stderr', bytes: Buffer): void;
  /** Who unprivileged commands of this runner are, where the request left that open. */
  user(user: RunnerUser): void;
}

export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** An exec ended and nobody told how the command did. */
  | { readonly kind: 'lost'; readonly exec: 'command' | 'control'; readonly end: ExecEnd };

/** What a session is after a command. */
export type Aftermath =
  /** As before the command. */
  | 'clean'
  /** In order itself, but processes live that were not there before. */
  | 'suspect'
  /** Of no further use. */
  | 'spent';

export interface SessionDeps {
  readonly nomad: Pick<Nomad, 'openExec'>;
  readonly clock: Clock;
}

export interface SessionOptions {
  readonly runner: Pick<ClaimedRunner, 'allocationId' | 'task'>;
  /** A path in the runner that nothing has yet. */
  readonly folder: string;
  /** For more than one command; without, `settle` says that it is spent. */
  readonly keep?: boolean;
  /** Whose leavings in the runner to sweep away before; undefined for nobody's. */
  readonly sweeping?: SessionNames | undefined;
  /** Bounds the opening only. */
  readonly signal: AbortSignal;
}

/** How long a session gets to end by itself. */
export const CLOSE_MS = 1000;
/** How long a runner gets to put everything in order after a command. */
export const SETTLE_MS = 2000;
