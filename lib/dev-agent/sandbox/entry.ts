import type { FileHandle } from 'node:fs/promises';
import { open, readFile, writeFile } from 'node:fs/promises';
import { messageOf } from '../../base/errors.js';

/**
 * How the driver becomes the root that builds sandboxes: as the real one, or as that of a user namespace of the
 * agent's own (unprivileged-entry.ts). Everything else of the driver is the same for both.
 *
 * Every sandbox has a user namespace below that of its builder, with the same ids. So capabilities in a sandbox, also
 * regained ones, count for the sandbox only, and what its builder mounted cannot be unmounted or made writable there.
 *
 * A range of host ids per sandbox is not made: files of the host would then belong to nobody in the sandbox, its root
 * could not write to /etc or /usr, and mounts that translate ids need util-linux 2.39, which Debian 12 lacks.
 */
export interface Entry {
  readonly kind: 'root' | 'unprivileged';
  /** The command that runs `command` as root of the place where sandboxes are built. */
  wrap(command: readonly string[]): readonly string[];
  /** Options of nsenter for the same. */
  readonly nsenterOptions: readonly string[];
  /** Gives the user namespace that process `pid` has just made the ids of its parent. */
  mapIds(pid: number): Promise<void>;
  close(): Promise<void>;
}

/** Root, the user `user`, the system users of the host and nobody, whose number is 65534. */
export const NEEDED_IDS = 65_535;

/** Rows of a uid_map or gid_map that keep every id of a namespace whose own map is `text`. */
export function identityMap(text: string): string {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [inside = '0', , count = '1'] = line.trim().split(/\s+/);
      return `${inside} ${inside} ${count}\n`;
    })
    .join('');
}

function countOf(map: string): number {
  return map
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[2] ?? 0), 0);
}

export class RootEntry implements Entry {
  readonly kind = 'root';
  readonly #toolbox: FileHandle;
  readonly #uidMap: string;
  readonly #gidMap: string;

  /** `toolbox`: an open mount namespace in which the host's programs are read-only (toolbox.ts). */
  private constructor(toolbox: FileHandle, uidMap: string, gidMap: string) {
    this.#toolbox = toolbox;
    this.#uidMap = uidMap;
    this.#gidMap = gidMap;
  }

  static async open(openToolbox: () => Promise<FileHandle>): Promise<RootEntry> {
    const [uidMap, gidMap] = await Promise.all([
      readFile('/proc/self/uid_map', 'utf8'),
      readFile('/proc/self/gid_map', 'utf8'),
    ]);
    const count = Math.min(countOf(uidMap), countOf(gidMap));
    if (count < NEEDED_IDS) {
      throw new Error(`root of this user namespace has ${count} ids, and sandboxes need ${NEEDED_IDS}`);
    }
    const toolbox = await openToolbox().catch((error: unknown) => {
      const reason = `namespaces and mounts cannot be made here (${messageOf(error)})`;
      throw new Error(`${reason}: a container needs --privileged for it`, { cause: error });
    });
    return new RootEntry(toolbox, identityMap(uidMap), identityMap(gidMap));
  }

  get nsenterOptions(): readonly string[] {
    return [`--mount=${pathOf(this.#toolbox)}`];
  }

  wrap(command: readonly string[]): readonly string[] {
    return command;
  }

  async mapIds(pid: number): Promise<void> {
    await writeFile(`/proc/${pid}/uid_map`, this.#uidMap);
    await writeFile(`/proc/${pid}/gid_map`, this.#gidMap);
  }

  close(): Promise<void> {
    return this.#toolbox.close();
  }
}

/** A path by which a child of the agent can open what the agent holds open. */
export function pathOf(handle: FileHandle): string {
  return `/proc/${process.pid}/fd/${handle.fd}`;
}

/** Opens a namespace of a process, which thereby outlives the process. */
export function openNamespace(pid: number, name: 'mnt' | 'user'): Promise<FileHandle> {
  return open(`/proc/${pid}/ns/${name}`);
}
