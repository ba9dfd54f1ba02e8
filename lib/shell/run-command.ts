import { script } from './script.js';

/**
 * Shell functions that run one command as its user, shared by the scripts for execs with and without a terminal.
 *
 * - Our own steps run as root, so their tools come from the system's folders only: an image may have folders of its
 *   user on PATH. The command gets the image's PATH.
 * - The variables of the request are given by `env` after the change of user, so that none of them (LD_PRELOAD) acts on
 *   a step of ours. Those that are known to do no harm are exported before it (`serai_export`, from the request), which
 *   saves a program. Those of Nomad are unset.
 * - Tools that become the user in place come before those that stay as a parent. Each is tried, because BusyBox has
 *   a `setpriv` that knows no `--reuid`; `su` is asked not to leave the terminal's session
 *   where it can be.
 * - HOME, USER and LOGNAME become the user's own.
 * - Starting a program costs a millisecond, so between the request and a plain command there are two: the tool that
 *   becomes the user and the shell. A small request is read by the shell itself, byte by byte as `read` does.
 *
 * In: what formatRequest sends. `serai_tell` prints a control line; `serai_d` is a folder for a command that is too long
 * for an argument, made by the caller.
 */
/**
 * Prints a refusal and ends where the runner lacks a tool that no script goes without. It stands first, so that what is
 * missing later cannot look like something else.
 */
export const CHECK_TOOLS = script(`
for serai_x in cat dd env head id mkdir mkfifo printf; do
  command -v "$serai_x" >/dev/null 2>&1 || { echo 'E - tools'; exit 0; }
done
`);

export const RUN_COMMAND = script(`
set -f
serai_path=$PATH
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
{ command -v head && command -v env; } >/dev/null || PATH=$PATH:$serai_path

# Names of Nomad's variables. A piece of another variable's value may look like one, which does no harm.
serai_strip=
IFS='
'
for serai_x in $(export -p); do
  serai_x=\${serai_x#export }
  serai_x=\${serai_x#declare -x }
  serai_x=\${serai_x%%=*}
  case $serai_x in
    *[!A-Za-z0-9_]*) ;;
    NOMAD_?*) serai_strip="$serai_strip $serai_x" ;;
  esac
done
unset IFS
[ -z "$serai_strip" ] || unset $serai_strip

# Finds one of our tools by builtins alone: its path goes to serai_at, or its name where the shell itself has it (BusyBox).
serai_where() {
  serai_at=
  IFS=:
  for serai_x in $PATH; do
    [ -f "$serai_x/$1" ] && [ -x "$serai_x/$1" ] && serai_at=$serai_x/$1 && break
  done
  unset IFS
  [ -n "$serai_at" ] || { command -v "$1" >/dev/null && serai_at=$1; }
}
serai_where env
serai_env=$serai_at

serai_sh=/bin/sh
for serai_x in /usr/local/bin/bash /usr/bin/bash /bin/bash; do
  [ -x "$serai_x" ] && serai_sh=$serai_x && break
done

# Finds a user by name or number; a number needs no entry.
serai_find_user() {
  while IFS=: read -r serai_n serai_x serai_u serai_g serai_x serai_h serai_x || [ -n "$serai_n" ]; do
    if [ "$serai_n" = "$1" ] || [ "$serai_u" = "$1" ]; then
      serai_name=$serai_n serai_uid=$serai_u serai_gid=$serai_g serai_home=$serai_h
      return 0
    fi
  done </etc/passwd
  case $1 in *[!0-9]*) return 1 ;; esac
  serai_name=$1 serai_uid=$1 serai_gid=$1 serai_home=/
}

# Tools that stay as a parent say how a signal ended their child, so they get one that makes it an exit code.
serai_shield='trap : INT QUIT TSTP HUP; exec 9>&2 2>/dev/null; ("$@") 2>&9 9>&-; exit $?'

# Finds the program behind serai_tool, once for each: its path goes to serai_bin.
serai_bind() {
  [ "$serai_bound" != "$serai_tool" ] || return 0
  serai_bound=$serai_tool serai_bin=
  case $serai_tool in
    none) return 0 ;;
    setuser) serai_at=; [ ! -x /sbin/setuser ] || serai_at=/sbin/setuser ;;
    setpriv*) serai_where setpriv ;;
    *) serai_where "\${serai_tool%-session}" ;;
  esac
  serai_bin=$serai_at
  [ -n "$serai_bin" ]
}

# TOOL NAME UID GID HOME: who runs the command, as a request says it.
serai_as() {
  serai_tool=$1 serai_name=$2 serai_uid=$3 serai_gid=$4 serai_home=$5
}

# Becomes the user and then the command "$@". For subshells: it does not return.
serai_become() {
  case $serai_tool in
    none) exec "$@" ;;
    setpriv) exec "$serai_bin" --reuid "$serai_uid" --regid "$serai_gid" --init-groups "$@" ;;
    setpriv:*) exec "$serai_bin" --reuid "$serai_uid" --regid "$serai_gid" --groups "\${serai_tool#*:}" "$@" ;;
    setpriv-clear) exec "$serai_bin" --reuid "$serai_uid" --regid "$serai_gid" --clear-groups "$@" ;;
    su-exec | gosu | setuser) exec "$serai_bin" "$serai_name" "$@" ;;
    runuser) exec "$serai_bin" -u "$serai_name" -- /bin/sh -c "$serai_shield" sh "$@" ;;
    su-session) exec "$serai_bin" -s /bin/sh --session-command "$serai_shield" -- "$serai_name" sh "$@" ;;
    su) exec "$serai_bin" -s /bin/sh -c "$serai_shield" -- "$serai_name" sh "$@" ;;
  esac
  exit 127
}

# Who runs the commands, and how to become it; in an exec that is not root's there is nothing to drop.
serai_find_tool() {
  if [ "$(id -u)" != 0 ]; then
    serai_tool=none serai_name=- serai_uid=$(id -u) serai_gid=$(id -g) serai_home=
    return 0
  fi
  serai_why=user
  for serai_x in $serai_users; do
    serai_find_user "$serai_x" && serai_why= && break
  done
  [ -z "$serai_why" ] || return 1
  serai_why=root-user
  [ "$serai_uid" != 0 ] || return 1
  serai_why=no-drop
  for serai_tool in setpriv setpriv-clear su-exec gosu setuser runuser su-session su; do
    serai_bind || continue
    [ "$(serai_become sh -c 'id -u' 2>/dev/null </dev/null)" = "$serai_uid" ] && serai_find_groups && return 0
  done
  return 1
}

# Looking a user's groups up costs each command time, so they become part of the tool's name where they are known.
serai_find_groups() {
  [ "$serai_tool" = setpriv ] || return 0
  serai_x=$(id -G -- "$serai_name" 2>/dev/null) || return 0
  IFS=' '
  set -- $serai_x
  IFS=,
  serai_x="$*"
  unset IFS
  case $serai_x in '' | *[!0-9,]*) ;; *) serai_tool=setpriv:$serai_x ;; esac
}

serai_refuse() {
  serai_tell "E $serai_t $1"
  return 1
}

# Everything that can refuse a command before it begins.
serai_prepare() {
  if [ -z "$serai_tool" ]; then
    serai_find_tool || { serai_refuse "$serai_why"; return 1; }
    serai_tell "U $serai_t $serai_tool $serai_name $serai_uid $serai_gid $serai_home"
  fi
  serai_bind || { serai_refuse no-drop; return 1; }
  if [ -n "$serai_cwd" ]; then
    (serai_become sh -c 'cd -- "$0"' "$serai_cwd") >/dev/null 2>&1 </dev/null || { serai_refuse directory; return 1; }
  fi
  if [ -n "$serai_long" ]; then
    serai_store || { serai_refuse folder; return 1; }
    serai_c=". $serai_d/f"
  fi
}

# Keeps a long command in a file of its user's.
serai_store() (
  umask 077
  printf %s "$serai_c" >"$serai_d/f" || exit 1
  [ "$serai_tool" = none ] || chown "$serai_uid" "$serai_d/f"
)

# Becomes the command, with the variables "$@". For subshells.
serai_command() {
  serai_export
  case $serai_tool in
    none) ;;
    setpriv* | su-exec | gosu) export "HOME=$serai_home" "USER=$serai_name" "LOGNAME=$serai_name" ;;
    # These have their own mind about variables, so they get them by \`env\`.
    *) set -- "HOME=$serai_home" "USER=$serai_name" "LOGNAME=$serai_name" "$@" ;;
  esac
  case $#$serai_tool in
    0none | 0setpriv* | 0su-exec | 0gosu) ;;
    *) set -- "$serai_env" "PATH=$serai_path" "$@" "SERAI_EXECUTION=$serai_id" ;;
  esac
  [ -z "$serai_cwd" ] || set -- "$@" /bin/sh -c 'cd -- "$0" && unset OLDPWD && exec "$@"' "$serai_cwd"
  export "PATH=$serai_path" "SERAI_EXECUTION=$serai_id"
  serai_become "$@" "$serai_sh" -c "$serai_c"
}

# Reads a request from standard input. Only what its header says is taken: that many lines, or else that many bytes, or
# nothing else where it has no text.
serai_receive() {
  IFS=' ' read -r serai_t serai_lines serai_size || return 1
  # The rest of a request of which a process that waited took the beginning, and died.
  case $serai_t in '' | *[!0-9]*) return 1 ;; esac
  case $serai_size in '' | *[!0-9-]*) return 1 ;; esac
  case $serai_last in ?*"$serai_t") return 1 ;; esac
  serai_last=
  serai_r= serai_split= serai_long= serai_cwd= serai_in= serai_tool= serai_users= serai_armed=
  serai_export() { :; }
  case $serai_lines in
    again | never) return 0 ;;
    0)
      serai_r=$(head -c "$serai_size"; printf .)
      serai_r=\${serai_r%.}
      return 0 ;;
  esac
  while [ "$serai_lines" -gt 0 ]; do
    IFS= read -r serai_x || return 1
    serai_r=$serai_r$serai_x'
'
    serai_lines=$((serai_lines - 1))
  done
}

# Reports where this shell stands among the processes: session and terminal, also in serai_place. serai_private is set where
# its parent is outside of the task's process namespace, so that every process in there is of the task.
serai_report() {
  read -r serai_x </proc/$$/stat || serai_x=') ? 0 0 0 0'
  set -- \${serai_x##*) }
  serai_place="$4 $5" serai_private=
  [ "$2" != 0 ] || serai_private=1
  serai_tell "R $$ $4 $5"
}
`);

/** True for a tool below which the command runs, in a shell of ours, instead of in its place. */
export function staysAsParent(tool: string): boolean {
  return tool === 'runuser' || tool === 'su-session' || tool === 'su';
}
