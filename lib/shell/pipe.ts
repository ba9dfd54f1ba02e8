import { assignment } from './quote.js';
import { END_FORMAT, START_FORMAT } from './frames.js';
import { CHECK_TOOLS, RUN_COMMAND } from './run-command.js';
import { script } from './script.js';

/**
 * One command without a terminal: a single exec.
 *
 * Over standard input come this script, the request and, once the start marker was seen, the program's own input.
 * Standard output carries control lines, the start marker, the output, the end marker and the exit code; standard error
 * is framed by the markers alone. So the end is known although a child in the background may hold the pipes open.
 *
 * A program may leave the pipes in non-blocking mode (they are shared with it), so a marker is written until it is
 * taken. What the shell itself would say ("Killed") goes nowhere.
 */
const PIPE = script(`
${CHECK_TOOLS}
exec 5>&2 2>/dev/null
serai_tell() { printf '%s\\n' "$1"; }
serai_insist() {
  serai_i=0
  until printf "$@" || [ "$serai_i" -ge 12000 ]; do
    serai_i=$((serai_i + 1))
    sleep 0.05 || sleep 1
  done
}
serai_report
serai_receive || exit 0
eval "$serai_r"
serai_r=
if [ -n "$serai_long" ]; then
  mkdir -m 711 "$serai_d" || { serai_refuse folder; exit 0; }
fi
if serai_prepare; then
  # So that the program can open /dev/stdout and /dev/stderr.
  if [ "$serai_tool" != none ]; then
    [ ! -p /proc/self/fd/1 ] || chown "$serai_uid" /proc/self/fd/1
    [ ! -p /proc/self/fd/5 ] || chown "$serai_uid" /proc/self/fd/5
  fi
  printf ${START_FORMAT} "$serai_t"
  printf ${START_FORMAT} "$serai_t" >&5
  (serai_command "$@") 2>&5 5>&-
  serai_e=$?
  serai_insist ${END_FORMAT} "$serai_t" >&5
  serai_insist '\\035%s1%s\\n' "$serai_t" "$serai_e"
fi
[ -z "$serai_long" ] || rm -rf "$serai_d"
`);

/** The script for an exec without a terminal; `folder` is made only for a long command. */
export function pipeScript(folder: string): string {
  return `${assignment('serai_d', folder)}\n${RUN_COMMAND}${PIPE}`;
}
