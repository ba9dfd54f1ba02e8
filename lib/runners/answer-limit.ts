import type { Deadline } from '../base/abort.js';
import { deadline } from '../base/abort.js';
import type { Clock } from '../base/clock.js';

/**
 * How long a client waits for Nomad. An answer of ours is due within 5 s, whatever Nomad does, and its way takes some of
 * that. What was begun goes on behind the answer.
 */
export const ANSWER_MS = 4_000;

/** Aborts with NOMAD_UNREACHABLE when a client has waited long enough for `what`. */
export function answerLimit(clock: Clock, what: string): Deadline {
  return deadline(
    clock,
    ANSWER_MS,
    'NOMAD_UNREACHABLE',
    `Nomad has not confirmed ${what} in time; try again`,
  );
}
