import { COPY_FILES } from './copy-files.js';
import { END_FORMAT, START_FORMAT } from './frames.js';
import { LEFTOVERS } from './leftovers.js';
import { assignment } from './quote.js';
import { READ_FILES } from './read-files.js';
import { CHECK_TOOLS, RUN_COMMAND } from './run-command.js';
import { feed, script } from './script.js';
import type { SessionNames } from './sweep.js';
import { SWEEP, sweep } from './sweep.js';

/**
 * File operations, one after the other: a single exec without a terminal, whose shell is root's.
 *
 * Over standard input come this script and the requests. A request's command is no command of a client's but a call of the
 * functions here, and runs in a subshell; the function becomes the user where the request names one. Standard output
 * carries control lines and, between the markers, what the call prints:
 *
 *   ▶ request     ◀ start marker     ▶ input, as long as the request says     ◀ output, end marker, exit code
 *   ▶ "over" and the token, where there was input                             ◀ idle: clean or suspect
 *
 * The invariants:
 * - Input is never taken for a request. A call gets a pipe with exactly its input, or nothing. Where it ended before it took
 *   all of that, another line stands where "over" must, and the loop ends.
 * - No process but root's ever holds a descriptor of the exec: what a user's process prints passes through a `cat`. So nothing
 *   that a program took hold of once can write into a later answer, or block the exec.
 * - Each call begins in the folder in which the exec began, entered anew, and only where that is still in the same place.
 *
 * A request with the word `again` for its number of lines only asks for the last line once more. Standard error goes
 * nowhere. End of input ends the loop.
 */
const LOOP = script(`
serai_tell() { printf '%s\\n' "$1"; }
LC_ALL=C
export LC_ALL
unset CDPATH
umask 022
cd -P .
serai_root=$PWD

# What the call of the request prints, and how it ended.
serai_call() {
  (
    [ -z "$serai_id" ] || export "SERAI_EXECUTION=$serai_id"
    eval "$serai_c"
  )
  serai_e=$?
  printf ${END_FORMAT} "$serai_t"
  serai_tell "X $serai_t $serai_e"
}
serai_guard() {
  if [ "$serai_tool" = none ]; then serai_call; else serai_call | cat; fi
}
serai_serve() {
  serai_long= serai_cwd=
  cd -P "$serai_root" && [ "$PWD" = "$serai_root" ] || { serai_refuse directory; return; }
  serai_prepare || return
  printf ${START_FORMAT} "$serai_t"
  if [ "$serai_in" = 0 ]; then serai_guard </dev/null; else head -c "$serai_in" | serai_guard; fi
}
serai_report
while serai_receive; do
  if [ "$serai_lines" != again ]; then
    serai_processes
    serai_before=$serai_all serai_c=
    eval "$serai_r"
    # Nothing of a request that was cut off is done.
    [ -n "$serai_c" ] || break
    serai_serve
    if [ -e "$serai_d" ] || [ -L "$serai_d" ]; then rm -rf "$serai_d"; fi
    if [ "$serai_in" != 0 ]; then
      IFS= read -r serai_x && [ "$serai_x" = "over $serai_t" ] || break
    fi
  fi
  serai_look "$serai_before"
  serai_tell "I $serai_t $serai_verdict"
done
`);

/**
 * What to write to a `scriptReader` for the loop: a short script that reads the long one in one piece. A `head` may take more
 * than that from the pipe, so nothing may follow until the loop reported that it is ready.
 */
export function feedFileLoop(folder: string, sweeping: SessionNames | undefined): Buffer {
  const text = [
    RUN_COMMAND,
    LEFTOVERS,
    READ_FILES,
    COPY_FILES,
    `${assignment('serai_d', folder)}\n${sweep(sweeping)}\n`,
    SWEEP,
    LOOP,
    '#',
  ].join('');
  const length = Buffer.byteLength(text);
  const reader = `${CHECK_TOOLS}exec 2>/dev/null\nserai_r=$(head -c ${length})\ncase $serai_r in *'#') eval "$serai_r" ;; esac\n`;
  return Buffer.concat([feed(reader), Buffer.from(text)]);
}

/** What tells the loop that all of a command's input was sent. */
export function formatOver(token: string): Buffer {
  return Buffer.from(`over ${token}\n`);
}

/** A script of ours as a call: with what a shell of its own would give it. */
export function scriptCall(text: string): string {
  return `set +f\nPATH=$serai_path\n${text}`;
}
