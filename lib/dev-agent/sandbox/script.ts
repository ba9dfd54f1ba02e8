import { STANDARD_PATH } from '../process/run.js';

/**
 * The shell texts by which a sandbox is built, kept and entered.
 *
 * Building, by the process that becomes process 1 of the sandbox:
 *   SETUP   as root of the builder, in fresh mount, PID, IPC, UTS and network namespaces that still show the host:
 *           mounts everything below ROOT, makes ROOT the root, says `pid N` (its number outside) and goes on as
 *   CONFINE in a user namespace and mount namespace below those, where nothing that SETUP mounted can be changed. Says
 *           `user`, waits until the agent has mapped the ids, and goes on, with few capabilities and no way to more, as
 *   INIT    says `armed`, waits for the agent once more, and lives until the agent's pipe ends.
 *
 * Two things end INIT, and the kernel then kills all that is in the sandbox: the death of its parent (which itself dies
 * with the agent), and the end of its standard input. Since it waits for the agent after it armed the first, an agent
 * that died before that moment is noticed by the second. While `cat` reads, the shell waits for any child, so that
 * orphans are reaped; a `cat` that was killed is replaced, since somebody in the sandbox took it for a stray.
 */
export const SETUP = `
set -eu
base=$1 fstab=$2 dev_template=$3 devices=$4 store=$5 network=$6 hostname=$7 owner=$8 confine=$9
shift 9
if [ "$store" = memory ]; then mount -t tmpfs -o mode=755,nosuid,nodev serai "$base"; fi
cd "$base"
links= folders=
while [ "$1" != -- ]; do links="$links $1"; shift; done
shift
while [ "$1" != -- ]; do folders="$folders $1"; shift; done
shift
mkdir -p $folders
mkdir -m 700 root/root secrets
mkdir -m 1777 tmp vartmp
chown "$owner" workspace home
if [ -n "$links" ]; then cp -P $links root/; fi
if [ "$devices" = bind ]; then
  for device in null zero full random urandom tty; do : > root/dev/$device; done
  cp -a "$dev_template/." root/dev/
fi
mount --all --fstab "$fstab"
if [ "$devices" = make ]; then
  cp -a "$dev_template/." /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty root/dev/
fi
echo "$hostname" > root/etc/hostname
echo "127.0.1.1 $hostname" >> root/etc/hosts
{ echo "$hostname" > /proc/sys/kernel/hostname || hostname "$hostname" || true; } 2>/dev/null
if [ "$network" = none ]; then
  if mount -t sysfs sysfs root/sys 2>/dev/null; then
    echo 0x9 > root/sys/class/net/lo/flags
    umount root/sys
  else
    ip link set lo up
  fi
  { echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start || true; } 2>/dev/null
fi
read -r pid _ < /proc/self/stat
cd root
pivot_root . .
umount -l .
cd /workspace
unset OLDPWD
echo "pid $pid"
exec unshare --user --mount -- sh -c "$confine" init "$@"
`;

export const CONFINE = `
echo user
read -r _ || exit 1
exec "$@"
`;

export const INIT = `
echo armed
read -r _ || exit 1
exec > /dev/null 2>&1
until cat; do
  [ "$?" -gt 128 ] || exit 1
done
exit 0
`;

/**
 * Entering: closes every descriptor that the agent's child inherited (the agent's terminals are among them, and only
 * bash can close numbers above 9), then becomes the command it was given.
 */
export const SHED = `
for fd in /proc/self/fd/*; do
  fd=\${fd##*/}
  case $fd in 0|1|2) ;; *) eval "exec $fd>&-" ;; esac
done
exec "$@"
`;

/**
 * The same with a terminal as standard output. It is made standard input here only, because bash makes a terminal that
 * it starts with its controlling one, and then no other session can have it.
 */
export const SHED_WITH_TERMINAL = `exec <&1\n${SHED}`;

/**
 * Waiting: in the PID namespace of the agent, with children in that of the sandbox. Joins the cgroups, runs the command
 * as its child and ends with its exit code. It is here because nsenter would stop with its child and not go on with it.
 * What the shell itself says of a child that was killed must not come between the child's output.
 */
export const WAIT = `
while [ "$1" != -- ]; do
  echo 0 > "$1" || exit 125
  shift
done
shift
exec 3>&2 2>/dev/null
( exec "$@" 2>&3 3>&- )
exit "$?"
`;

/**
 * What root may do in a sandbox: own, read and kill what belongs to its users, become one of them (also in a folder of
 * its own as root), give up more, and read the environment of their processes, by which processes are told apart.
 */
const CAPABILITIES = [
  'chown',
  'dac_override',
  'fowner',
  'fsetid',
  'kill',
  'setgid',
  'setuid',
  'setpcap',
  'sys_chroot',
  'sys_ptrace',
];

/** The command that runs `command` in a sandbox with no capabilities but these, and no way to regain others. */
export function confined(command: readonly string[], options: readonly string[] = []): string[] {
  const bounding = ['-all', ...CAPABILITIES.map((name) => `+${name}`)].join(',');
  return ['setpriv', '--no-new-privs', `--bounding-set=${bounding}`, ...options, '--', ...command];
}

/** The command that runs `command` with these variables and no others. */
export function withEnvironment(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): string[] {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  // env takes a word with an equals sign for a variable.
  const safe = command[0]?.includes('=') ? ['sh', '-c', 'exec "$0" "$@"', ...command] : command;
  return ['env', '-i', '--', ...variables, ...safe];
}

/**
 * The command that runs `command` with its standard streams at the sandbox's own /dev/null. Those of the host are not
 * for it: by /proc/<pid>/fd root of the sandbox could change their mode.
 */
export function silent(command: readonly string[]): string[] {
  return ['sh', '-c', 'exec "$@" < /dev/null > /dev/null 2>&1', 'main', ...command];
}

/**
 * Forbids user namespaces below that of the process: in one of its own a program can have every capability, and with
 * them try what the kernel lets nobody else try. Containers forbid them too.
 */
export const FORBID_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces';

/**
 * Variables that every task has unless it says otherwise. The home is root's, as in a container: root must not read
 * what an ordinary user left in a home of its own.
 */
export const BASE_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: STANDARD_PATH, HOME: '/root' };
