import { assignment } from './quote.js';
import { script } from './script.js';

/**
 * Cleans up behind a service that died: sessions that it had open in a runner live on, since dropping a socket ends nothing
 * there. Their folders are named `/tmp/.serai-<replica>-<boot>-<random>`, and each of their processes has its folder
 * among its arguments.
 *
 * Ended is what belongs to the same replica and another boot. A folder goes only where it is a real one of ours, so that
 * nothing is removed through a link; a process only where its arguments name such a folder, which one that pretends to
 * has to itself. A loop that dies hangs up its terminal, and with it whatever ran there.
 */
export const SWEEP = script(`
serai_sweep() {
  set +f
  for serai_p in /proc/[0-9]*; do
    serai_is_dead "$serai_p" && kill -9 "\${serai_p#/proc/}"
  done
  for serai_x in "$serai_family"*; do
    case $serai_x in "$serai_house"*) continue ;; esac
    [ -d "$serai_x" ] && [ ! -L "$serai_x" ] && [ -O "$serai_x" ] && rm -rf "$serai_x"
  done
  set -f
}
serai_is_dead() {
  {
    while IFS= read -r serai_x || [ -n "$serai_x" ]; do
      case $serai_x in
        *"$serai_house"*) return 1 ;;
        *"$serai_family"*) return 0 ;;
      esac
    done
  } <"$1/cmdline"
  return 1
}
[ -z "$serai_family" ] || serai_sweep 2>/dev/null
`);

/** Whose sessions are whose, as the beginnings of the names of their folders. */
export interface SessionNames {
  /** All of this replica, of whatever boot. */
  readonly family: string;
  /** Those of this boot. */
  readonly house: string;
}

/** The assignments that SWEEP needs; without names it does nothing. */
export function sweep(names: SessionNames | undefined): string {
  return [
    assignment('serai_family', names?.family ?? ''),
    assignment('serai_house', names?.house ?? ''),
  ].join('\n');
}
