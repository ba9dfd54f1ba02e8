import { END_FORMAT, START_FORMAT } from './frames.js';
import { assignment } from './quote.js';
import { CHECK_TOOLS, RUN_COMMAND } from './run-command.js';
import { script } from './script.js';

/**
 * Commands with a terminal: two execs and a private folder.
 *
 *   control exec (no TTY)                    folder /tmp/.serai-…            terminal exec (TTY)
 *     stdin  ──────── requests ───────────▶   fifo q, 0600  ───────────────▶  loop: one request after the other
 *     stdout ◀─────── control lines ───────   fifo c, 0600  ◀───────────────    started, exit code
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
 * Each command opens fifo e anew, and the end marker is written to the terminal by a fresh opening: a program may leave
 * what it shares with the loop in non-blocking mode, and a marker could be refused then.
 */
const CONTROL = script(`
${CHECK_TOOLS}
umask 077
serai_fail() { rm -rf "$serai_d"; printf 'E - folder\\n'; exit 0; }
mkdir -m 711 "$serai_d" 2>/dev/null || { serai_d=; serai_fail; }
{ printf %s "$serai_loop" >"$serai_d/t" && mkfifo -m 622 "$serai_d/e" && mkfifo -m 600 "$serai_d/q" "$serai_d/c"; } 2>/dev/null || serai_fail
exec 3<>"$serai_d/e" 5<>"$serai_d/c" 6<>"$serai_d/q"
cat <&3 >&2 3<&- 5<&- 6<&- &
serai_a=$!
exec 2>/dev/null
cat <&5 3<&- 5<&- 6<&- &
serai_b=$!
# Not cat: BusyBox's sends from a socket in the kernel, which locks the fifo for as long as no input comes.
dd bs=65536 >&6 3<&- 5<&- 6<&-
exec 7<"$serai_d/e"
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

const LOOP = script(`
serai_d=$1
printf '%s\\n' "$$" >p
trap : INT QUIT TSTP HUP
exec 4<>c 5<>e 6<q 2>/dev/null
cd -P "$serai_w" || cd /
unset OLDPWD
serai_tell() { printf '%s\\n' "$1" >&4; }
serai_run() {
  serai_prepare || return
  # So that the program can open /dev/stdout and /dev/tty as its own.
  [ "$serai_tool" = none ] || chown "$serai_uid" /proc/self/fd/1
  printf ${START_FORMAT} "$serai_t"
  [ -z "$serai_split" ] || printf ${START_FORMAT} "$serai_t" >&5
  serai_tell "S $serai_t"
  if [ -n "$serai_split" ]; then
    (serai_command "$@") 2>"$serai_d/e" 4>&- 5>&- 6<&-
  else
    (serai_command "$@") 2>&1 4>&- 5>&- 6<&-
  fi
  serai_e=$?
  serai_tell "X $serai_t $serai_e"
  [ -z "$serai_split" ] || printf ${END_FORMAT} "$serai_t" >&5
  { printf ${END_FORMAT} "$serai_t" >/dev/tty; } || printf ${END_FORMAT} "$serai_t"
}
serai_report
while serai_receive <&6; do
  eval "$serai_r"
  serai_r=
  serai_run "$@"
  set --
done
exit 0
`);

/** The script for the control exec. */
export function controlScript(folder: string): string {
  return `${assignment('serai_d', folder)}\n${assignment('serai_loop', RUN_COMMAND + LOOP)}\n${CONTROL}`;
}

/** The argument vector for the terminal exec. */
export function terminalLoop(folder: string): readonly string[] {
  return ['sh', '-c', WAIT_FOR_FOLDER, 'serai', folder];
}
