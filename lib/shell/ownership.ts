import type { RunnerProcess } from './frames.js';
import { assignment } from './quote.js';
import { script } from './script.js';

/**
 * Finds out whose the processes in a runner are, by reading /proc; for the scripts that end or signal them.
 *
 * Whose is a process? In this order:
 * - *target* or *other*: it descends from the shell that runs that execution's command, is in that shell's session and
 *   terminal, descends from one that is, or has the execution's id in its environment;
 * - *ours*: it is in the session of process 1, which nobody can join, or its environment names the allocation, which no
 *   command's does, and it runs as we do, or it descends from such a one;
 * - *nobody's*: all the rest (`setsid env -i …`). Where `sweep` is set it is treated as the target; otherwise counted.
 *
 * Process 1 and we are never touched, nor are the shells named as roots. Nobody's processes are only known where our own
 * parent has the number 0, being outside of the task's process namespace: without one (a task on the bare host) the rest
 * of the machine would look like that, and is left alone.
 *
 * Nearly everything is done by builtins of the shell: a runner in which a fork bomb runs has no process to spare.
 * `read` drops NUL characters, so an environment reads as one or a few long lines.
 *
 * `serai_scan` is one look; it may be repeated, and each finds what is new. It needs the assignments of `ownership`.
 */
export const OWNERSHIP = script(`
exec 2>/dev/null
# Notes $2 as the owner of process $1.
serai_claim() {
  eval "serai_own_$1=$2"
  [ "$2" != target ] || serai_new="$serai_new $1" serai_left="$serai_left $1"
}

# The shells that run the commands of $1, as triples of process, session and terminal.
serai_roots_of() {
  serai_x=$1
  shift
  while [ $# -ge 3 ]; do
    eval "serai_root_$1=$serai_x"
    [ "$3" = 0 ] || eval "serai_terminal_$2_$3=$serai_x"
    shift 3
  done
}

# What the environment of process $1 says of it, in serai_o.
serai_by_environment() {
  serai_o=nobody
  {
    while IFS= read -r serai_l || [ -n "$serai_l" ]; do
      case $serai_l in
        *"NOMAD_ALLOC_ID=$serai_allocation"*) serai_o=named ;;
      esac
      case $serai_l in
        *SERAI_EXECUTION=*)
          serai_l=\${serai_l##*SERAI_EXECUTION=}
          for serai_x in $serai_others; do
            case $serai_l in "$serai_x"*) serai_o=other ;; esac
          done
          [ -z "$serai_id" ] || case $serai_l in "$serai_id"*) serai_o=target ;; esac
          return ;;
      esac
    done
  } <"/proc/$1/environ" || serai_o=gone
}

# The real user of process $1, in serai_u.
serai_user_of() {
  serai_u=
  {
    while read -r serai_k serai_v serai_x; do
      [ "$serai_k" != Uid: ] || { serai_u=$serai_v; return; }
    done
  } <"/proc/$1/status"
}

# One look at all processes: new targets are in serai_new, all living ones in serai_left.
serai_scan() {
  serai_new= serai_left= serai_nobody=0 serai_open=
  for serai_p in /proc/[0-9]*; do
    serai_p=\${serai_p#/proc/}
    [ "$serai_p" != 1 ] && [ "$serai_p" != $$ ] || continue
    serai_l=
    read -r serai_l <"/proc/$serai_p/stat" || continue
    set -- \${serai_l##*) }
    [ "$1" != Z ] && [ "$1" != X ] || continue
    eval "serai_parent_$serai_p=$2 serai_o=\\$serai_own_$serai_p serai_x=\\$serai_start_$serai_p serai_r=\\$serai_root_$serai_p"
    if [ -n "$serai_r" ]; then
      eval "serai_own_$serai_p=$serai_r"
      continue
    fi
    # New, or a number that was given to another process since.
    if [ "$serai_x" != "\${20}" ]; then
      eval "serai_start_$serai_p=\${20} serai_own_$serai_p= serai_session_$serai_p=$4 serai_o=\\$serai_terminal_$4_$5"
      [ -z "$serai_o" ] || { serai_claim "$serai_p" "$serai_o"; continue; }
      [ -n "$serai_private" ] || [ "\${20}" -ge "$serai_since" ] || serai_o=older
      eval "serai_own_$serai_p=$serai_o"
    fi
    case $serai_o in
      '') serai_open="$serai_open $serai_p" ;;
      target) serai_left="$serai_left $serai_p" ;;
      nobody) serai_nobody=$((serai_nobody + 1)) ;;
    esac
  done
  serai_descend 'target other'
  serai_rest=$serai_open serai_open=
  for serai_p in $serai_rest; do
    serai_by_environment "$serai_p"
    case $serai_o in
      target | other) serai_claim "$serai_p" "$serai_o" ;;
      named | nobody) eval "serai_says_$serai_p=$serai_o"; serai_open="$serai_open $serai_p" ;;
    esac
  done
  serai_descend 'target other'
  serai_rest=$serai_open serai_open=
  for serai_p in $serai_rest; do
    eval "serai_o=\\$serai_says_$serai_p serai_x=\\$serai_session_$serai_p"
    [ "$serai_x" != "$serai_session" ] || serai_o=ours
    if [ "$serai_o" = named ]; then
      serai_user_of "$serai_p"
      [ "$serai_u" != "$serai_me" ] || serai_o=ours
    fi
    if [ -z "$serai_private" ] || [ "$serai_o" = ours ]; then
      serai_claim "$serai_p" ours
    else
      serai_open="$serai_open $serai_p"
    fi
  done
  # A step of ours that is just being executed has no environment for a moment.
  serai_descend ours
  for serai_p in $serai_open; do
    if [ -n "$serai_sweep" ]; then
      serai_claim "$serai_p" target
    else
      serai_claim "$serai_p" nobody
      serai_nobody=$((serai_nobody + 1))
    fi
  done
}

# Gives the processes in serai_open to the owner of their parent where that is one of $1, as long as it finds any.
serai_descend() {
  serai_found=1
  while [ "$serai_found" = 1 ]; do
    serai_found=0 serai_rest=$serai_open serai_open=
    for serai_p in $serai_rest; do
      eval "serai_x=\\$serai_parent_$serai_p"
      eval "serai_o=\\$serai_own_$serai_x"
      case " $1 " in
        *" \${serai_o:-none} "*)
          serai_claim "$serai_p" "$serai_o"
          serai_found=1 ;;
        *) serai_open="$serai_open $serai_p" ;;
      esac
    done
  done
}

serai_private=
read -r serai_l </proc/$$/stat && set -- \${serai_l##*) } && [ "$2" = 0 ] && read -r serai_l </proc/1/stat && serai_private=1
set -- \${serai_l##*) }
serai_session=$4
serai_user_of $$
serai_me=$serai_u
serai_roots_of target $serai_roots
serai_roots_of other $serai_other_roots
# What began before the execution did is none of its processes; a bare host has hundreds of those.
serai_since=0
for serai_p in \${serai_roots%% *}; do
  read -r serai_l <"/proc/$serai_p/stat" && set -- \${serai_l##*) } && serai_since=\${20}
done
`);

/** An execution, with the shell that runs its command where that is known. */
export interface OwnedBy {
  readonly id: string;
  readonly root: RunnerProcess | undefined;
}

export interface OwnershipRequest {
  readonly allocationId: string;
  /** The execution whose processes are looked for; undefined looks for nobody's only. */
  readonly target: OwnedBy | undefined;
  /** Executions whose processes are not the target's: those that run, and those that ended by themselves. */
  readonly others: readonly OwnedBy[];
  /** Also take what belongs to nobody for the target's; only while nothing else runs. */
  readonly sweep: boolean;
}

/** The assignments that precede OWNERSHIP. */
export function ownership({ allocationId, target, others, sweep }: OwnershipRequest): string {
  return [
    assignment('serai_allocation', allocationId),
    assignment('serai_id', target?.id ?? ''),
    assignment('serai_others', others.map(({ id }) => id).join(' ')),
    assignment('serai_roots', roots(target ? [target] : [])),
    assignment('serai_other_roots', roots(others)),
    assignment('serai_sweep', sweep ? '1' : ''),
  ].join('\n');
}

function roots(executions: readonly OwnedBy[]): string {
  return executions
    .flatMap(({ root }) => (root ? [`${root.pid} ${root.session} ${root.terminal}`] : []))
    .join(' ');
}
