import { assignment, quote } from './quote.js';
import { script } from './script.js';

/**
 * Functions of the file loop (file-loop.ts) that list and read files, as the user who asks. A path is an argument of
 * theirs, quoted, and never part of their text.
 *
 * A listing is a run of records, each field ended by a NUL, which no name can hold. The first record is that of the path
 * itself. With GNU find nothing runs but find, in the place of the tool that becomes the user, so nothing is looked at with
 * other rights than the user's; elsewhere `stat` writes the numbers of a batch and the shell its names.
 */

/** Fields of an entry in the order in which they are written. */
export const LIST_FIELDS = ['mode', 'size', 'modified', 'owner', 'group', 'path', 'target'] as const;

/** Exit code where the path is missing or may not be read. */
export const UNREADABLE = 44;

/**
 * Exit code of find where it had something to complain of: of a path that is missing or closed, when there is no record
 * but that of a folder itself; else of folders further down.
 */
export const INCOMPLETE = 1;

/** PATH DEPTH: a listing without GNU find. */
const LISTER = script(`
[ -e "$1" ] || [ -L "$1" ] || exit ${UNREADABLE}
case $1 in
  */) [ -d "$1" ] || exit ${UNREADABLE} ;;
esac
if [ -d "$1" ] && { [ ! -L "$1" ] || [ "$1" != "\${1%/}" ]; }; then
  [ -r "$1" ] && [ -x "$1" ] || exit ${UNREADABLE}
fi
command -v find >/dev/null || exit 127
if [ -n "$2" ]; then set -- "$1" -maxdepth "$2"; else set -- "$1"; fi
find "$@" -exec /bin/sh -c '
  for f do
    s=$(stat -c "%A %s %Y %U %G" -- "$f") || continue
    set -- $s
    l=
    if [ -L "$f" ]; then l=$(readlink -n -- "$f" && printf .); l=\${l%.}; fi
    printf "%s\\\\0" "$1" "$2" "$3" "$4" "$5" "$f" "$l"
  done
' sh {} +
e=$?
[ "$e" = 1 ] || exit "$e"
`);

/**
 * PATH: prints one line with the length of the file in bytes, then its bytes. The file is opened once, so both are of the
 * same file. What is no regular file is unreadable: a fifo would never end.
 */
const READER = script(`
[ -f "$1" ] || exit ${UNREADABLE}
{
  stat -L -c %s /proc/self/fd/0 || echo -
  exec cat
} <"$1" || exit ${UNREADABLE}
`);

/** The functions; they end the shell that calls them. */
export const READ_FILES = script(`
serai_gnu=
find / -prune -printf '' >/dev/null && serai_gnu=1
# Makes a relative path one that cannot be taken for an option.
serai_plain() {
  case $1 in
    /*|./*|../*|.|..) serai_p=$1 ;;
    *) serai_p=./$1 ;;
  esac
}
# PATH DEPTH; the depth is empty, or 1 for the folder alone.
serai_list() {
  serai_plain "$1"
  [ -n "$serai_gnu" ] || serai_become /bin/sh -c "$serai_lister" sh "$serai_p" "$2"
  if [ -n "$2" ]; then set -- -maxdepth "$2"; else set --; fi
  serai_become find "$serai_p" -ignore_readdir_race "$@" -printf '%M\\0%s\\0%T@\\0%u\\0%g\\0%p\\0%l\\0'
}
serai_read() {
  serai_plain "$1"
  serai_become /bin/sh -c "$serai_reader" sh "$serai_p"
}
`).concat(`${assignment('serai_lister', LISTER)}\n${assignment('serai_reader', READER)}\n`);

/** Lists a folder, or the one entry of what is none. */
export function listCall(path: string, recursive: boolean): string {
  return `serai_list ${quote(path)} ${quote(recursive ? '' : '1')}`;
}

export function readCall(path: string): string {
  return `serai_read ${quote(path)}`;
}
