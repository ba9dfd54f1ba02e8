import { Guardian } from '../guardian.js';

/**
 * Removes an agent's folder and cgroups once the agent has ended, however it did. The sandboxes end by themselves
 * (script.ts), a moment later: what is still in use then is tried again. Where this is killed too, the next agent that
 * starts does it.
 *
 * Lines on the pipe: paths of cgroups.
 */
const SCRIPT = `
folder=$1
shift
while read -r cgroup; do set -- "$@" "$cgroup"; done
for delay in 0 0.2 0.5 1 1; do
  sleep "$delay"
  left=
  if [ -e "$folder" ]; then rm -rf -- "$folder" || left=1; fi
  for cgroup; do
    if [ -d "$cgroup" ]; then find "$cgroup" -depth -type d -exec rmdir {} + || left=1; fi
  done
  [ -n "$left" ] || exit 0
done
`;

export function guardLeftovers(folder: string): Guardian {
  return new Guardian(SCRIPT, [folder]);
}
