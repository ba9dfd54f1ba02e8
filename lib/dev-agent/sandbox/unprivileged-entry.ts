import type { FileHandle } from 'node:fs/promises';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { messageOf } from '../../base/errors.js';
import { Dialogue } from '../process/dialogue.js';
import type { Entry } from './entry.js';
import { NEEDED_IDS, openNamespace, pathOf } from './entry.js';
import { run } from '../process/run.js';
import { hasTool } from './tools.js';

/** Ids above 0 that a user may use in namespaces of its own. */
interface IdRange {
  readonly start: number;
  readonly count: number;
}

/**
 * A user namespace of the agent's own in which the agent's user is root and a range of /etc/subuid are the others, made
 * with the help of newuidmap and newgidmap. It needs no process: it lives as long as the agent holds it open.
 */
export class UnprivilegedEntry implements Entry {
  readonly kind = 'unprivileged';
  readonly #namespace: FileHandle;
  readonly #map: string;

  private constructor(namespace: FileHandle, count: number) {
    this.#namespace = namespace;
    // The two parts of the outer map stay two parts: one part cannot span them.
    this.#map = `0 0 1\n1 1 ${count}\n`;
  }

  /** Rejects with a sentence that says which piece is missing and how it is installed. */
  static async open(): Promise<UnprivilegedEntry> {
    const { username, uid, gid } = self();
    for (const name of ['newuidmap', 'newgidmap']) {
      if (!(await hasTool(name))) {
        throw new Error(
          `${name} is missing, without which only root can make sandboxes: apt-get install uidmap`,
        );
      }
    }
    const uids = await rangeOf('/etc/subuid', username, uid);
    const gids = await rangeOf('/etc/subgid', username, uid);
    const count = Math.min(uids.count, gids.count);
    const dialogue = await Dialogue.open(['unshare', '--user', '--', 'sh', '-c', 'echo made; read -r _']);
    try {
      await dialogue.expect('made').catch((error: unknown) => {
        throw new Error(forbidden(messageOf(error)), { cause: error });
      });
      const { pid } = dialogue;
      await run(['newuidmap', pid, 0, uid, 1, 1, uids.start, count].map(String));
      await run(['newgidmap', pid, 0, gid, 1, 1, gids.start, count].map(String));
      return new UnprivilegedEntry(await openNamespace(pid, 'user'), count);
    } finally {
      await dialogue.close();
    }
  }

  get nsenterOptions(): readonly string[] {
    return [`--user=${pathOf(this.#namespace)}`];
  }

  wrap(command: readonly string[]): readonly string[] {
    return ['nsenter', ...this.nsenterOptions, '--', ...command];
  }

  async mapIds(pid: number): Promise<void> {
    const script = 'printf %s "$2" > "/proc/$1/uid_map" && printf %s "$2" > "/proc/$1/gid_map"';
    await run(this.wrap(['sh', '-c', script, 'map', String(pid), this.#map]));
  }

  close(): Promise<void> {
    return this.#namespace.close();
  }
}

/** The agent's user; one that is in no account file goes by its number, as it does in /etc/subuid. */
function self(): { username: string; uid: number; gid: number } {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  try {
    return { username: userInfo().username, uid, gid };
  } catch {
    return { username: String(uid), uid, gid };
  }
}

async function rangeOf(file: string, username: string, uid: number): Promise<IdRange> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const ranges = text
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([owner]) => owner === username || owner === String(uid))
    .map(([, start, count]) => ({ start: Number(start), count: Number(count) }));
  const found = ranges.find(({ count }) => count >= NEEDED_IDS);
  if (found) return found;
  const range = '100000-165535';
  throw new Error(
    `${username} has no range of ${NEEDED_IDS} ids in ${file}, without which only root can make sandboxes: ` +
      `usermod --add-subuids ${range} --add-subgids ${range} ${username}`,
  );
}

function forbidden(complaint: string): string {
  return (
    `only root can make sandboxes, since other users may not make user namespaces (${complaint}): ` +
    'sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0, whichever exists'
  );
}
