import type { ExecSession } from '../nomad/api.js';
import type { SessionDeps } from './session.js';
import { CLOSE_MS } from './session.js';
import { settlesWithin } from './within.js';

/** Ends an exec by the end of its input; what does not take that is dropped. Never rejects. */
export async function endExec({ clock }: Pick<SessionDeps, 'clock'>, exec: ExecSession): Promise<void> {
  exec.resume();
  exec.closeStdin();
  await settlesWithin(clock, CLOSE_MS, exec.end);
  exec.destroy();
}
