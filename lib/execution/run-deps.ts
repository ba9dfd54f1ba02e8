import type { Logger } from '../base/log.js';
import type { CommandRequest } from '../shell/request.js';
import type { Pulse } from './pulse.js';
import type { SessionDeps } from './session.js';
import type { SessionLease } from './session-source.js';

/** What a run works with. */
export interface RunDeps extends SessionDeps {
  readonly log: Logger;
  readonly pulse: Pulse;
  /** Gets a session that fits the request. */
  readonly lease: (signal: AbortSignal) => Promise<SessionLease>;
  readonly command: CommandRequest;
  /** Most bytes that the command may print; 0 means any number. */
  readonly outputLimitBytes: number;
  /** Aborts when the service stops: what is being opened is given up. */
  readonly stopSignal: AbortSignal;
  /** The runner, which nobody has changed yet, shows that its image cannot run commands, or, without a reason, that it can. */
  readonly reportFitness: (reason: string | undefined) => void;
}
