import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { MountRow } from './mount-table.js';
import { parseMountInfo } from './mount-table.js';

export type Controller = 'memory' | 'pids';
export const CONTROLLERS: readonly Controller[] = ['memory', 'pids'];

/** A mounted tree of cgroups in which the agent has one of its own, `folder`. */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly folder: string;
  readonly controllers: readonly Controller[];
}

/** Makes a cgroup called `name` wherever that limits something that is not limited elsewhere already. */
export async function openHierarchies(name: string): Promise<Hierarchy[]> {
  const mounts = parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8'));
  const own = await readFile('/proc/self/cgroup', 'utf8');
  const opened: Hierarchy[] = [];
  for (const { parent, version, controllers } of [
    ...versionOne(mounts, own),
    ...(await versionTwo(mounts)),
  ]) {
    const wanted = controllers.filter((name) => !opened.some((other) => other.controllers.includes(name)));
    const hierarchy = { version, folder: path.join(parent, name), controllers: wanted };
    if (wanted.length > 0 && (await isUsable(parent, hierarchy))) opened.push(hierarchy);
  }
  return opened;
}

/** A place where the agent's cgroup could be. */
interface Candidate {
  readonly version: 1 | 2;
  readonly parent: string;
  readonly controllers: readonly Controller[];
}

function versionOne(mounts: readonly MountRow[], own: string): Candidate[] {
  return CONTROLLERS.flatMap((controller) => {
    const mount = mounts.find((row) => row.type === 'cgroup' && row.superOptions.includes(controller));
    if (!mount) return [];
    const line = own.split('\n').find((row) => row.split(':')[1]?.split(',').includes(controller));
    const inOwn = path.join(mount.mountPoint, line?.split(':').slice(2).join(':') ?? '/');
    // Below the agent's own, so that its limits hold for its sandboxes; in a container that may not be visible.
    return [inOwn, mount.mountPoint].map((parent) => ({ version: 1, parent, controllers: [controller] }));
  });
}

/** Version 2 lets no cgroup but the topmost have both processes and cgroups with limits: the agent's goes there. */
async function versionTwo(mounts: readonly MountRow[]): Promise<Candidate[]> {
  const mount = mounts.find((row) => row.type === 'cgroup2');
  if (!mount) return [];
  const text = await readFile(path.join(mount.mountPoint, 'cgroup.controllers'), 'utf8').catch(() => '');
  const controllers = CONTROLLERS.filter((name) => text.trim().split(' ').includes(name));
  return [{ version: 2, parent: mount.mountPoint, controllers }];
}

async function isUsable(parent: string, { version, folder, controllers }: Hierarchy): Promise<boolean> {
  try {
    if (version === 2) await enableBelow(parent, controllers);
    await mkdir(folder, { recursive: true });
    if (version === 2) await enableBelow(folder, controllers);
    return true;
  } catch {
    return false; // read-only, not there or not the agent's to use; the driver says what cannot be limited
  }
}

/** Lets the cgroups below a cgroup of version 2 have these limits. */
export async function enableBelow(folder: string, controllers: readonly Controller[]): Promise<void> {
  const file = path.join(folder, 'cgroup.subtree_control');
  const enabled = (await readFile(file, 'utf8')).trim().split(' ');
  const lacking = controllers.filter((name) => !enabled.includes(name));
  if (lacking.length > 0) await writeFile(file, lacking.map((name) => `+${name}`).join(' '));
}
