import { script } from './script.js';

/**
 * The scripts that list and read files in a runner, as the user who asks. The path comes in the variable `serai_path`,
 * never in the text of the script.
 *
 * A listing is a run of records, each field ended by a NUL, which no name can hold. With GNU find one process writes it;
 * elsewhere `stat` writes the numbers of a batch and the shell its names.
 */

/** Fields of an entry in the order in which the scripts write them. */
export const LIST_FIELDS = ['mode', 'size', 'modified', 'owner', 'group', 'path', 'target'] as const;

/** Exit code of both scripts where the path is missing or may not be read. */
export const UNREADABLE = 44;

/** `serai_depth` is empty, or 1 for the folder alone. */
export const LIST_FILES = script(`
LC_ALL=C
export LC_ALL
exec 2>/dev/null
serai_p=$serai_path
unset serai_path
case $serai_p in
  /*|./*|../*|.|..) ;;
  *) serai_p=./$serai_p ;;
esac
[ -e "$serai_p" ] || [ -L "$serai_p" ] || exit ${UNREADABLE}
case $serai_p in
  */) [ -d "$serai_p" ] || exit ${UNREADABLE} ;;
esac
serai_min=0
if [ -d "$serai_p" ] && { [ ! -L "$serai_p" ] || [ "$serai_p" != "\${serai_p%/}" ]; }; then
  [ -r "$serai_p" ] && [ -x "$serai_p" ] || exit ${UNREADABLE}
  serai_min=1
fi
command -v find >/dev/null || exit 1
set -- "$serai_p" -mindepth "$serai_min"
[ -z "$serai_depth" ] || set -- "$@" -maxdepth "$serai_depth"
if find / -prune -printf '' >/dev/null; then
  find "$@" -printf '%M\\0%s\\0%T@\\0%u\\0%g\\0%p\\0%l\\0'
  exit 0
fi
find "$@" -exec sh -c '
  for f do
    s=$(stat -c "%A %s %Y %U %G" -- "$f") || continue
    set -- $s
    l=
    if [ -L "$f" ]; then l=$(readlink -n -- "$f" && printf .); l=\${l%.}; fi
    printf "%s\\\\0" "$1" "$2" "$3" "$4" "$5" "$f" "$l"
  done
' sh {} +
exit 0
`);

/**
 * Prints one line with the length of the file in bytes, then its bytes. The file is opened once, so both are of the same
 * file. What is no regular file is unreadable: a fifo would never end.
 */
export const READ_FILE = script(`
serai_p=$serai_path
unset serai_path
case $serai_p in
  /*|./*|../*) ;;
  *) serai_p=./$serai_p ;;
esac
[ -f "$serai_p" ] && { exec 3<"$serai_p"; } 2>/dev/null || exit ${UNREADABLE}
command -v cat >/dev/null 2>&1 || exit 1
stat -L -c %s /proc/self/fd/3 2>/dev/null || echo -
exec cat <&3
`);
