import { Guardian } from '../guardian.js';
import { MARK_VARIABLE } from './process-table.js';

/**
 * Kills what is left of an agent's tasks once the agent has ended: every process with the agent's mark and their
 * descendants, and the process groups that it was told of, for machines where marks cannot be read.
 *
 * Lines on the pipe: `+ GROUP` and `- GROUP`.
 */
const SCRIPT = `
variable=$1 mark=$2 groups=' '
while read -r verb group; do
  case $verb in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
end_tree() {
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do end_tree "$child"; done
  kill -9 "$1" 2>/dev/null
}
end_marked() {
  found=$(grep -l -a -s -F "$variable=$mark" /proc/[0-9]*/environ)
  for file in $found; do
    pid=\${file#/proc/}
    end_tree "\${pid%/environ}"
  done
  [ -n "$found" ]
}
round=0
while [ "$round" -lt 50 ] && end_marked; do round=$((round + 1)); done
for group in $groups; do kill -9 -- "-$group" 2>/dev/null; done
while [ "$round" -lt 100 ] && end_marked; do round=$((round + 1)); done
`;

export class TaskGuardian {
  readonly #guardian: Guardian;

  /** Guards every process whose mark begins with `mark`. */
  constructor(mark: string) {
    this.#guardian = new Guardian(SCRIPT, [MARK_VARIABLE, mark]);
  }

  watch(group: number): void {
    this.#guardian.tell(`+ ${group}`);
  }

  unwatch(group: number): void {
    this.#guardian.tell(`- ${group}`);
  }

  /** Kills what is left; resolves when that is done. */
  stop(): Promise<void> {
    return this.#guardian.stop();
  }
}
