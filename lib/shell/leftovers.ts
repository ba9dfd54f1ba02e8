import { script } from './script.js';

/**
 * Finds out whether a command left processes behind, by builtins of the shell alone: the list of all processes before it
 * is held against the one after it.
 *
 * What bears the mark of another execution is none of this command's, as long as it descends from an exec: a program can
 * feign a mark, but not such a parent once the command is over. Where others share the machine's processes with us (a
 * task on the bare host) only those count that bear the command's own mark or are in our session.
 *
 * In: serai_place and serai_private of serai_report.
 */
export const LEFTOVERS = script(`
# All processes, in serai_all.
serai_processes() {
  set +f
  set -- /proc/[0-9]*
  set -f
  serai_all=" $* "
}

# BEFORE: whether a process lives that is not in that list, in serai_verdict: clean or suspect.
serai_look() {
  serai_verdict=clean
  serai_processes
  for serai_p in $serai_all; do
    case $1 in *" $serai_p "*) continue ;; esac
    serai_x=
    read -r serai_x <"$serai_p/stat" || continue
    serai_is_left "$serai_p" \${serai_x##*) } || continue
    serai_verdict=suspect
    return
  done
}

# FOLDER STATE PARENT GROUP SESSION TERMINAL …: whether this process is the command's.
serai_is_left() {
  case $2 in Z | X) return 1 ;; esac
  [ "$5 $6" != "$serai_place" ] || return 0
  while IFS= read -r serai_x || [ -n "$serai_x" ]; do
    case $serai_x in
      *"SERAI_EXECUTION=\${serai_id:--}"*) return 0 ;;
      *SERAI_EXECUTION=*)
        [ -n "$serai_private" ] && serai_is_orphan "$3"
        return ;;
      # One of our own in another exec: no command has this variable, and nobody else runs as we do.
      *NOMAD_ALLOC_ID=*) [ ! -O "$1" ] || return 1 ;;
    esac
  done <"$1/environ"
  [ -n "$serai_private" ]
}

# PARENT: whether it is process 1, or descends from that, which no process of an exec does.
serai_is_orphan() {
  while [ "$1" -gt 1 ]; do
    serai_x=
    read -r serai_x <"/proc/$1/stat" || return 0
    set -- \${serai_x##*) }
    shift
  done
  [ "$1" = 1 ]
}
`);
