import { quote } from './quote.js';
import { script } from './script.js';

/**
 * Functions of the file loop (file-loop.ts) that delete and copy files in a runner, as root.
 *
 * Over standard input comes a tar archive. It is unpacked into a private staging folder, the one of the loop, which clears
 * it away; each file is renamed from there to its place, so a file is there whole or not at all.
 *
 * Invariant: nothing is written or removed through a link that a program planted. The way to a folder is walked one
 * component at a time, and after each step the physical place must be the expected one; since the working folder is
 * then held by the process, a link planted a moment later redirects nothing. A link is followed only in a folder that
 * root alone can write. `mv` into `.` replaces a link of the file's name, and `rm` removes the link itself.
 *
 * Out, a line each: `F <step> <item> <reason>` (that one failed), `D` (done).
 */
export const COPY_FILES = script(`
serai_me=$(id -u)
serai_broken=
serai_say() { printf '%s\\n' "$*"; }
serai_fail() { serai_say F "$1" "$2" "\${3##*: }"; }

# Makes a folder the working one; with "make" it makes what is missing on the way. Says why not in serai_why.
serai_enter() {
  case $1 in
    /*) cd / ;;
    *) cd "$serai_root" || { serai_why='No such file or directory'; return 1; } ;;
  esac
  serai_rest=$1
  while [ -n "$serai_rest" ]; do
    serai_c=\${serai_rest%%/*}
    case $serai_rest in
      */*) serai_rest=\${serai_rest#*/} ;;
      *) serai_rest= ;;
    esac
    case $serai_c in
      ''|.) continue ;;
      ..) cd -P .. || { serai_why='Permission denied'; return 1; }; continue ;;
    esac
    if [ ! -d "./$serai_c" ]; then
      if [ -e "./$serai_c" ] || [ -L "./$serai_c" ]; then serai_why='Not a directory'; return 1; fi
      [ "$2" = make ] || { serai_why='No such file or directory'; return 1; }
      serai_why=$(mkdir -m 755 "./$serai_c" 2>&1) || return 1
    fi
    serai_to=\${PWD%/}/$serai_c
    if [ -L "./$serai_c" ]; then
      serai_why='Too many levels of symbolic links'
      [ -n "$(find . -prune -user 0 ! -perm -020 ! -perm -002)" ] || return 1
      serai_to=
    fi
    cd -P "./$serai_c" || { serai_why='Permission denied'; return 1; }
    serai_why='Too many levels of symbolic links'
    [ -z "$serai_to" ] || [ "$PWD" = "$serai_to" ] || return 1
  done
  serai_why=
}

# STEP FOLDER NAME…: removes names from a folder; what is not there is no failure.
serai_remove() {
  serai_step=$1
  serai_enter "$2" keep || { serai_refused_removal "$serai_step"; return; }
  shift 2
  serai_k=0
  for serai_n do
    serai_why=$(rm -rf "./$serai_n" 2>&1) || serai_fail "$serai_step" "$serai_k" "$serai_why"
    serai_k=$((serai_k + 1))
  done
}

# STEP FOLDER: removes all that a folder holds, names with a leading dot included.
serai_empty() {
  serai_enter "$2" keep || { serai_refused_removal "$1"; return; }
  set +f
  set -- "$1" ./* ./.[!.]* ./..?*
  set -f
  serai_step=$1 serai_found=
  shift
  # What matched nothing stands there as it was written, and a name like that would have matched.
  for serai_n do
    [ ! -e "$serai_n" ] && [ ! -L "$serai_n" ] || { serai_found=1; break; }
  done
  if [ ! -r . ]; then
    serai_empty_anyway
  elif [ -n "$serai_found" ]; then
    rm -rf "$@" || serai_empty_anyway
  fi
}
# Where there are too many names for one program, and to hear what is wrong.
serai_empty_anyway() {
  serai_why=$(find . ! -name . -prune -exec rm -rf {} + 2>&1) || serai_fail "$serai_step" 0 "$serai_why"
}
serai_refused_removal() {
  case $serai_why in
    'No such file or directory' | 'Not a directory') ;;
    *) serai_fail "$1" 0 "$serai_why" ;;
  esac
}

# STEP FOLDER: a folder in which everybody may make files and nobody may change or remove those of others.
serai_folder() {
  serai_enter "$2" make &&
    { [ "$serai_me" != 0 ] || serai_why=$(chown 0:0 . 2>&1); } &&
    serai_why=$(chmod 1777 . 2>&1) || serai_fail "$1" 0 "$serai_why"
}

# Takes the archive into the staging folder.
serai_unpack() {
  serai_stage=$serai_d
  if serai_broken=$(mkdir -m 700 "$serai_stage" 2>&1); then
    serai_broken=$(tar -x -f - -C "$serai_stage" 2>&1) && serai_broken=
  else
    serai_stage=/nonexistent
  fi
  serai_broken=\${serai_broken%%
*}
}

# GROUP ALIAS SIZE NAME: drops a file of the archive that is not whole, and gives it its name where it has an alias.
serai_check() {
  if [ -n "$serai_broken" ]; then
    [ "$(wc -c <"$serai_stage/$1/$2")" -eq "$3" ] || rm -f "$serai_stage/$1/$2"
  fi
  [ "$2" = "$4" ] || mv -f "$serai_stage/$1/$2" "$serai_stage/$1/$4"
}

# STEP GROUP FOLDER NAME…: moves files of a staging group into their folder, with one program where nothing is wrong.
serai_place() {
  serai_step=$1
  serai_group=$serai_stage/$2
  serai_enter "$3" make
  shift 3
  serai_k=0
  for serai_n do
    if [ -n "$serai_why" ]; then
      serai_fail "$serai_step" "$serai_k" "$serai_why"
    elif [ -d "./$serai_n" ] && [ ! -L "./$serai_n" ]; then
      rm -f "$serai_group/$serai_n"
      serai_fail "$serai_step" "$serai_k" 'Is a directory'
    elif [ ! -f "$serai_group/$serai_n" ]; then
      serai_fail "$serai_step" "$serai_k" "\${serai_broken:-No such file or directory}"
    fi
    serai_k=$((serai_k + 1))
  done
  [ -z "$serai_why" ] || return
  serai_move "$@" && return
  serai_k=0
  for serai_n do
    if [ -f "$serai_group/$serai_n" ]; then
      serai_x=$(mv -f "$serai_group/$serai_n" . 2>&1) || serai_fail "$serai_step" "$serai_k" "$serai_x"
    fi
    serai_k=$((serai_k + 1))
  done
}

# NAME…: moves those that the staging group has.
serai_move() {
  for serai_n do
    shift
    [ ! -f "$serai_group/$serai_n" ] || set -- "$@" "$serai_group/$serai_n"
  done
  [ $# = 0 ] || mv -f "$@" .
}
`);

/** One thing to do; `name`s are single components, `folder` is a path as the caller wrote it. */
export type FileStep =
  | { readonly kind: 'remove'; readonly folder: string; readonly names: readonly string[] }
  | { readonly kind: 'empty'; readonly folder: string }
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'place'; readonly folder: string; readonly files: readonly StagedFile[] };

export interface StagedFile {
  readonly name: string;
  /** What the file is called in the archive: names that every tar can carry. */
  readonly alias: string;
  readonly sizeBytes: number;
}

/** Where the archive keeps a file of a step. */
export function stagedPath(step: number, file: StagedFile): string {
  return `${step}/${file.alias}`;
}

/** The calls for these steps, in this order. An archive is taken where there is a step that places files. */
export function copyCall(steps: readonly FileStep[]): string {
  const calls = steps.flatMap((step, index) => callsOf(step, index));
  const takesArchive = steps.some((step) => step.kind === 'place');
  const removals = calls.filter(({ early }) => early).map(({ line }) => line);
  const rest = calls.filter(({ early }) => !early).map(({ line }) => line);
  return [...removals, ...(takesArchive ? ['serai_unpack\n'] : []), ...rest, 'serai_say D\n'].join('');
}

function callsOf(step: FileStep, index: number): { line: string; early: boolean }[] {
  switch (step.kind) {
    case 'empty':
    case 'folder':
      return [{ line: `serai_${step.kind} ${index} ${quote(step.folder)}\n`, early: step.kind === 'empty' }];
    case 'remove':
      return [{ line: `serai_remove ${index} ${words([step.folder, ...step.names])}\n`, early: true }];
    case 'place':
      return [
        ...step.files.map((file) => ({
          line: `serai_check ${index} ${words([file.alias, String(file.sizeBytes), file.name])}\n`,
          early: false,
        })),
        {
          line: `serai_place ${index} ${index} ${words([step.folder, ...step.files.map(({ name }) => name)])}\n`,
          early: false,
        },
      ];
  }
}

function words(texts: readonly string[]): string {
  return texts.map(quote).join(' ');
}
