import type { OwnershipRequest } from './ownership.js';
import { ownership, OWNERSHIP } from './ownership.js';
import { script } from './script.js';

/**
 * Ends every process of an execution in a runner (whose is which: ownership.ts).
 *
 * Targets are stopped first, so that they cannot fork, and looked for until there is no new one, then killed; that is
 * repeated until none is left but zombies, which an init that reaps nobody leaves for ever.
 */
const KILL_TREE = script(`
[ -n "$serai_id$serai_private" ] || { echo 'K 0 0'; exit 0; }
serai_i=0
while :; do
  serai_scan
  while [ -n "$serai_new" ]; do
    kill -STOP $serai_new
    serai_scan
  done
  [ -n "$serai_left" ] && [ "$serai_i" -lt 60 ] || break
  kill -KILL $serai_left
  serai_i=$((serai_i + 1))
  [ "$serai_i" -lt 3 ] || sleep 0.02
done
set -- $serai_left
printf 'K %s %s\\n' "$#" "$serai_nobody"
`);

/** `target` is what to end; undefined ends nobody's processes only. `others` stay. */
export type KillRequest = OwnershipRequest;

export function killScript(request: KillRequest): string {
  return [ownership(request), OWNERSHIP + KILL_TREE].join('\n');
}

export interface KillResult {
  /** Processes of the target that did not die. */
  readonly left: number;
  /** Processes of nobody that live. */
  readonly nobody: number;
}

/** Undefined unless the script came to its end. */
export function parseKillResult(output: string): KillResult | undefined {
  const match = /^K (\d+) (\d+)$/m.exec(output);
  return match ? { left: Number(match[1]), nobody: Number(match[2]) } : undefined;
}
