import { END_FORMAT, START_FORMAT } from './frames.js';
import { LEFTOVERS } from './leftovers.js';
import { assignment } from './quote.js';
import { CHECK_TOOLS, RUN_COMMAND } from './run-command.js';
import { script } from './script.js';
import type { SessionNames } from './sweep.js';
import { SWEEP, sweep } from './sweep.js';

/**
 * Commands with a terminal: two execs and a private folder.
 *
 *   control exec (no TTY)                    folder /tmp/.serai-…            terminal exec (TTY)
 *     stdin  ──────── requests ───────────▶   fifo q, 0600  ───────────────▶  loop: one request after the other
 *     stdout ◀─────── control lines ───────   fifo c, 0600  ◀───────────────    started, exit code, idle
 *     stderr ◀─────── stderr ──────────────   fifo e, 0622  ◀───────────────    the command's stderr
 *                                             file t        ───────────────▶  the loop's own script
 *     TTY: the program's input and output, nothing else
 *
 * Nothing is ever taken from the terminal, because a program can type into it. The control side opens the fifos
 * read-write, so that nobody blocks on opening one. The two execs may start in either order: the terminal side waits for
 * the fifo that is made last, then enters the folder and goes on only if root (or itself) owns it.
 *
 * End of input on the control side ends everything: the loop is killed, and with it the terminal hangs up; the readers
 * are killed and the folder goes. Until then the loop keeps the terminal open, so no output is lost on closing. A child
 * that lives on and writes to its stderr would die of having no reader: one stays for as long as there are writers.
 *
 * Each command opens the terminal and fifo e anew: a program may leave what it opened in non-blocking mode, and neither
 * the loop nor the next command is to meet that.
 *
 * After a command the loop puts the terminal in order: unread input is thrown away, output that was stopped goes on,
 * modes and size are as at the beginning. Then it says that it is idle, and whether a process lives that did not before
 * the command. What cannot be put in order ends the loop. A request with the word `again` for its number of lines asks for
 * the same once more; its last word is a text that was typed behind all other input, so that none of that is still on its
 * way.
 *
 * While nothing is asked for, the loop may be *armed*: a process that is the user's already waits for the next request,
 * which saves half of the way to the command. It holds nothing that the command would not, but the fifo from which it
 * takes its own request. Should it be killed meanwhile, the loop takes the request itself.
 */
const CONTROL = script(`
${CHECK_TOOLS}
${SWEEP}
umask 077
serai_fail() { rm -rf "$serai_d"; printf 'E - folder\\n'; exit 0; }
mkdir -m 711 "$serai_d" 2>/dev/null || { serai_d=; serai_fail; }
{ printf %s "$serai_loop" >"$serai_d/t" && mkfifo -m 622 "$serai_d/e" && mkfifo -m 600 "$serai_d/q" "$serai_d/c"; } 2>/dev/null || serai_fail
exec 3<>"$serai_d/e" 5<>"$serai_d/c" 6<>"$serai_d/q"
# These name their fifos, so that they can be known by their arguments (sweep.ts).
cat "$serai_d/e" >&2 3<&- 5<&- 6<&- &
serai_a=$!
exec 2>/dev/null
cat "$serai_d/c" 3<&- 5<&- 6<&- &
serai_b=$!
# Not cat: BusyBox's sends from a socket in the kernel, which locks the fifo for as long as no input comes.
dd bs=65536 conv=notrunc of="$serai_d/q" 3<&- 5<&- 6<&-
# By the descriptor: a command of root may have put another fifo in its place, and opening that one would wait for ever.
exec 7<"/proc/$$/fd/3"
cat <&7 >/dev/null 3<&- 5<&- 6<&- 7<&- &
kill -9 "$serai_a" "$serai_b"
# More than once where the loop is just entering the folder.
serai_i=0
while [ -e "$serai_d" ] && [ "$serai_i" -lt 100 ]; do
  serai_i=$((serai_i + 1))
  serai_p=
  read -r serai_p <"$serai_d/p"
  if [ -n "$serai_p" ]; then
    read -r serai_x <"/proc/$serai_p/cmdline"
    case $serai_x in *"$serai_d"*) kill -9 "$serai_p" ;; esac
  fi
  rm -rf "$serai_d"
done
`);

/**
 * Waits about 15 s at most, or until it is interrupted: the control side may never come. On one line, because the control side knows the loop
 * again by the first line of its arguments.
 */
const WAIT_FOR_FOLDER =
  'serai_i=0; until [ -p "$1/c" ]; do serai_i=$((serai_i+1)); [ $serai_i -gt 600 ] && exit 75; ' +
  'sleep 0.02 2>/dev/null || sleep 1; done; serai_w=$PWD; cd -P "$1" && [ -O . ] && . ./t';

/**
 * What an armed loop's child does, as the user: it reads the next request from the loop's own fifo and becomes its command.
 * A line that says `never` sends it away. It prints what the loop prints otherwise before a command.
 */
const WAITER = script(`
serai_as() { :; }
serai_export() { :; }
IFS=" " read -r serai_t serai_lines serai_size <&6 || exit 0
[ "$serai_lines" != never ] || exit 0
serai_r=
while [ "$serai_lines" -gt 0 ]; do
IFS= read -r serai_x <&6 || exit 0
serai_r="$serai_r$serai_x
"
serai_lines=$((serai_lines - 1))
done
exec 6<&-
serai_split=
eval "$serai_r"
printf ${START_FORMAT} "$serai_t"
[ -z "$serai_split" ] || printf ${START_FORMAT} "$serai_t" >&2
serai_export
export "SERAI_EXECUTION=$serai_id"
exec "$0" -c "$serai_c"
`);

const LOOP = script(`
printf '%s\\n' "$$" >p
trap : INT QUIT TSTP HUP
exec 4<>c 5<>e 6<q 2>/dev/null
cd -P "$serai_w" || cd /
unset OLDPWD
serai_tell() { printf '%s\\n' "$1" >&4; }

serai_tty=/proc/self/fd/0
true <>"$serai_tty" || serai_tty=/dev/tty
serai_saved= serai_reads=
if [ -n "$serai_keep" ] && serai_saved=$(stty -g); then
  set -- $(stty size)
  serai_saved="$serai_saved rows $1 cols $2"
  case $(readlink "/proc/$$/exe") in */dash | */bash) serai_reads=1 ;; esac
fi
serai_owner=

# Makes the terminal the user's, so that the program can open /dev/stdout and /dev/tty as its own.
serai_own() {
  [ "$serai_tool" != none ] && [ "$serai_owner" != "$serai_uid" ] || return 0
  chown "$serai_uid" /proc/self/fd/1
  serai_owner=$serai_uid
}

# Throws unread input away, up to a line with $1 where that is given, and restores the terminal. Only of these shells it is
# known that \`read\` comes back from a terminal that has nothing.
serai_restore() {
  serai_time=0
  [ -z "$1" ] || serai_time=20
  stty -icanon -ixon min 0 time "$serai_time" || return
  serai_missing=$1
  if [ -z "$1" ] && [ -z "$serai_reads" ]; then
    cat >/dev/null
  else
    while IFS= read -r serai_x || [ -n "$serai_x" ]; do
      [ -n "$1" ] || continue
      case $serai_x in *"$1"*) serai_missing=; break ;; esac
    done
  fi
  [ -z "$serai_missing" ] && stty $serai_saved && true <>"$serai_tty" && serai_is_whole
}

# Whether the folder is still there, with the fifo of stderr that the control side reads: a command of root may have
# removed or replaced it, and the next one would fail on it, or wait for ever.
serai_is_whole() { [ "$serai_d/e" -ef "/proc/$$/fd/5" ]; }

# Told by the process that becomes the command: a key that is typed from then on interrupts that, and does not meet the loop,
# which is deaf to it.
serai_start() {
  printf ${START_FORMAT} "$serai_t"
  [ -z "$serai_split" ] || printf ${START_FORMAT} "$serai_t" >&2
  serai_tell "S $serai_t"
  exec 4>&- 5>&- 6<&-
}

serai_run() {
  [ -z "$serai_saved" ] || serai_is_whole || { serai_refuse folder; return; }
  serai_prepare || return
  serai_own
  if [ -n "$serai_split" ]; then
    (serai_start; serai_command "$@") 0<>"$serai_tty" 1>&0 2>"$serai_d/e"
  else
    (serai_start; serai_command "$@") 0<>"$serai_tty" 1>&0 2>&0
  fi
  serai_end $?
}

# Becomes a process that waits for the next request, as the user and in the place of its command.
serai_wait() {
  [ "$serai_tool" = none ] || export "HOME=$serai_home" "USER=$serai_name" "LOGNAME=$serai_name"
  export "PATH=$serai_path" SERAI_EXECUTION=-
  serai_become /bin/sh -c "$serai_waiter" "$serai_sh"
}

serai_arm() {
  serai_bind || { serai_refuse no-drop; return 1; }
  serai_own
  if [ -n "$serai_split" ]; then
    (serai_wait) 0<>"$serai_tty" 1>&0 2>"$serai_d/e" 4>&- 5>&-
  else
    (serai_wait) 0<>"$serai_tty" 1>&0 2>&0 4>&- 5>&-
  fi
  serai_end $?
  serai_last=$serai_t
}

# How a command ended, and the ends of its streams.
serai_end() {
  serai_tell "X $serai_t $1"
  [ -z "$serai_split" ] || printf ${END_FORMAT} "$serai_t" >&5
  printf ${END_FORMAT} "$serai_t"
}
serai_report
while serai_receive <&6; do
  serai_processes
  serai_before=$serai_all serai_typed=
  if [ "$serai_lines" = again ]; then
    serai_typed=\${serai_size#-}
  elif [ "$serai_lines" = never ]; then
    continue
  else
    eval "$serai_r"
    serai_r=
    if [ -n "$serai_armed" ]; then serai_arm; else serai_run "$@"; fi
    set --
  fi
  [ -n "$serai_saved" ] || continue
  serai_look "$serai_before"
  serai_restore "$serai_typed" || exit 0
  serai_tell "I $serai_t $serai_verdict"
done
exit 0
`);

export interface TerminalOptions {
  readonly folder: string;
  /** For more than one command. */
  readonly keep?: boolean;
  /** Whose leavings to sweep away before. */
  readonly sweeping?: SessionNames | undefined;
}

/** The script for the control exec. */
export function controlScript({ folder, keep, sweeping }: TerminalOptions): string {
  const loop = [
    assignment('serai_keep', keep ? '1' : ''),
    'serai_d=$1',
    assignment('serai_waiter', WAITER),
    RUN_COMMAND + LEFTOVERS + LOOP,
  ].join('\n');
  return [sweep(sweeping), assignment('serai_d', folder), assignment('serai_loop', loop), CONTROL].join('\n');
}

/** The argument vector for the terminal exec. */
export function terminalLoop(folder: string): readonly string[] {
  return ['sh', '-c', WAIT_FOR_FOLDER, 'serai', folder];
}
