import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { MARK_VARIABLE } from './process-table.js';

/**
 * A shell that outlives the agent by a moment: when the pipe from the agent ends, however the agent ended, it kills
 * every process with the agent's mark (and their descendants), the process groups it was told of, and removes the
 * agent's folder.
 *
 * Lines on the pipe: `+ GROUP` and `- GROUP`. It runs in a session of its own, so that a Ctrl-C meant for the agent does
 * not end it, and it ignores the signals that a shell would die of.
 */
const SCRIPT = `
trap '' HUP INT QUIT TERM
variable=$1 mark=$2 folder=$3 groups=' '
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
[ -z "$folder" ] || rm -rf -- "$folder"
`;

export class Guardian {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  /** Marks begin with `mark`; `folder` is removed at the end, unless it is empty. */
  constructor({ mark, folder }: { mark: string; folder: string }) {
    this.#child = spawn('/bin/sh', ['-c', SCRIPT, 'guardian', MARK_VARIABLE, mark, folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      detached: true,
    });
    // A guardian that died cannot be told anything; whoever kills it wants the agent's processes to be unguarded.
    this.#child.stdin?.on('error', () => undefined);
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.once('error', () => resolve());
    });
  }

  watch(group: number): void {
    this.#child.stdin?.write(`+ ${group}\n`);
  }

  unwatch(group: number): void {
    this.#child.stdin?.write(`- ${group}\n`);
  }

  /** Lets it do its work now; resolves when it has ended. */
  stop(): Promise<void> {
    this.#child.stdin?.end();
    return this.#ended;
  }
}
