import type { OwnershipRequest } from './ownership.js';
import { ownership, OWNERSHIP } from './ownership.js';
import { script } from './script.js';

/**
 * Hangs up on what an execution left in its terminal, as the kernel does when a terminal closes: SIGHUP, and SIGCONT for
 * what is stopped. Then it counts what lives on: of the execution, and of nobody (whose is which: ownership.ts).
 *
 * Only processes in the session of the shell that runs the commands are in its terminal; that shell, which traps the
 * signal, is not part of the execution. Nothing is killed here.
 */
const HANG_UP_TREE = script(`
serai_scan
set -- $serai_roots
serai_hang= serai_all=$serai_left
for serai_p in $serai_all; do
  eval "serai_x=\\$serai_session_$serai_p"
  [ "$serai_x" != "$2" ] || serai_hang="$serai_hang $serai_p"
done
if [ -n "$serai_hang" ]; then
  kill -HUP $serai_hang
  kill -CONT $serai_hang
fi
# What dies of it takes a moment to.
serai_i=0
while [ -n "$serai_hang" ] && [ "$serai_i" -lt 10 ]; do
  serai_scan
  [ -n "$serai_left" ] || break
  serai_i=$((serai_i + 1))
  sleep 0.02 || break
done
set -- $serai_left
printf 'K %s %s\\n' "$#" "$serai_nobody"
`);

/** Its answer is read by `parseKillResult`. */
export function hangUpScript(request: OwnershipRequest): string {
  return [ownership(request), OWNERSHIP + HANG_UP_TREE].join('\n');
}
