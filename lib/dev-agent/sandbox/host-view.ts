import type { Stats } from 'node:fs';
import { lstat, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { MountRow } from './mount-table.js';
import { isDisk, isWithin, parseMountInfo } from './mount-table.js';

/** What of the host a sandbox shows. Paths are the host's, and the same inside. */
export interface HostView {
  /** Folders shown copy-on-write, outer ones before those mounted in them. */
  readonly folders: readonly string[];
  /** Symbolic links of the top level, such as `/bin`. */
  readonly links: readonly string[];
  /** Kernel interfaces that a sandbox's root could change the host by: shown, but read-only. */
  readonly readOnly: readonly string[];
  /** Kernel files that are not for a sandbox's root to read or write: shown empty. */
  readonly empty: readonly string[];
  /** Further folders of the host, shown read-only. */
  readonly facts: readonly string[];
}

/** All that is ever shown of the top level; whatever else the host has there does not exist in a sandbox. */
const TOP_LEVEL = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/opt', '/var'];

/** Run-times ask how many processors there are. */
const FACTS = ['/sys/devices/system/cpu', '/sys/devices/system/node'];

/** Folders of /proc that are the process's own. */
const OWN_PROC = new Set(['net', 'self', 'thread-self', 'mounts']);

/** Looks at the host. `hidden` paths are left out together with what is mounted in them. */
export async function viewHost(hidden: readonly string[]): Promise<HostView> {
  const folders: string[] = [];
  const links: string[] = [];
  for (const name of TOP_LEVEL) {
    const found = await unlessGone(lstat(name));
    if (found?.isSymbolicLink()) links.push(name);
    else if (found?.isDirectory()) folders.push(name);
  }
  const mounts = parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8'));
  const nested = await nestedFolders(mounts, folders, hidden);
  const facts = [];
  for (const folder of FACTS) if (await isDirectory(folder)) facts.push(folder);
  return { folders: [...folders, ...nested], links, facts, ...(await viewProc()) };
}

/** An overlay does not show what is mounted in its lower folder: each such mount gets an overlay of its own. */
async function nestedFolders(
  mounts: readonly MountRow[],
  folders: readonly string[],
  hidden: readonly string[],
): Promise<string[]> {
  const points = mounts
    .filter(isDisk)
    .map(({ mountPoint }) => mountPoint)
    .filter((point) => folders.some((folder) => point !== folder && isWithin(point, folder)))
    .filter((point) => !hidden.some((folder) => isWithin(point, folder)));
  const nested = [];
  for (const point of [...new Set(points)].sort()) {
    // What only root may enter on the host, or nobody any more, is no part of what a sandbox needs.
    const found = await stat(point).catch(() => undefined);
    if (found?.isDirectory() && (found.mode & 0o005) === 0o005) nested.push(point);
  }
  return nested;
}

/**
 * Root of a sandbox has the number of the host's root, so the kernel lets it write what root may write in /proc without
 * asking for a capability. Everything there that can be written, or that only root may read, is therefore closed.
 */
async function viewProc(): Promise<Pick<HostView, 'readOnly' | 'empty'>> {
  const readOnly: string[] = [];
  const empty: string[] = [];
  for (const entry of await readdir('/proc', { withFileTypes: true })) {
    if (/^\d+$/.test(entry.name) || OWN_PROC.has(entry.name)) continue;
    const file = path.join('/proc', entry.name);
    const found = await unlessGone(lstat(file));
    if (found?.isDirectory()) readOnly.push(file);
    else if (found?.isFile() && isClosed(entry.name, found.mode)) empty.push(file);
  }
  return { readOnly, empty };
}

/** The keys of a user are those of the host's user with the same number, though everybody may read the file. */
function isClosed(name: string, mode: number): boolean {
  return name === 'keys' || (mode & 0o222) !== 0 || (mode & 0o004) === 0;
}

async function isDirectory(file: string): Promise<boolean> {
  const found = await unlessGone(stat(file));
  return found?.isDirectory() ?? false;
}

/** Undefined for what is not there. Any other failure counts: what could not be looked at would not be closed either. */
async function unlessGone(looking: Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
