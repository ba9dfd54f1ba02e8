import { chmod, lstat, mkdir, readdir, readFile, readlink, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * Where an agent keeps what belongs to its sandboxes: `<parent>/<name>`, the name telling which process it is.
 *
 * The parent is shared by the agents of one user, so that each finds what dead ones left. `<name>` is
 * `<PID namespace>-<pid>-<start time>-<count>`: a process of another PID namespace cannot be judged from here, a start
 * time makes a number that is used again another process, and one process may have several agents.
 */
export interface StateFolder {
  readonly path: string;
  readonly name: string;
  /** Names of agents that have ended without removing their folder. */
  readonly leftovers: readonly string[];
  readonly parent: string;
  /** Where sandboxes write to: in the folder, or in memory of their own where it is no disk. */
  readonly store: 'folder' | 'memory';
}

/** File systems that overlayfs cannot keep whiteouts on, by the magic numbers of statfs(2). */
const UNFIT = new Set([
  0x794c7630, // overlayfs
  0x6969, // NFS
  0x01021997, // 9P
  0x65735546, // FUSE
  0x4d44, // FAT
  0xff534d42, // CIFS
  0xfe534d42, // SMB2
  0xf15f, // eCryptfs
]);
const TMPFS = 0x01021994;

/** Mount options separate with these; a path that has one cannot be told to overlayfs. */
const UNFIT_PATH = /[^A-Za-z0-9/._-]/;

/** Makes the folder, with mode 0755 below a parent that only its owner enters. */
export async function makeStateFolder(
  candidates: readonly string[] = [tmpdir(), '/var/tmp', '/dev/shm'],
): Promise<StateFolder> {
  const uid = process.getuid?.() ?? 0;
  const { place, type } = await firstFit(candidates);
  const parent = path.join(place, `serai-sandbox-${uid}`);
  await makeNew(parent, 0o700);
  const found = await lstat(parent);
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new Error(`${parent} is not a folder of this user alone: remove it`);
  }
  const name = await makeOwn(parent);
  const folder = path.join(parent, name);
  await chmod(folder, 0o755);
  const leftovers = await namesOfDead(await readdir(parent), name);
  return { path: folder, name, leftovers, parent, store: type === TMPFS ? 'memory' : 'folder' };
}

async function firstFit(candidates: readonly string[]): Promise<{ place: string; type: number }> {
  for (const place of candidates) {
    if (UNFIT_PATH.test(place)) continue;
    const type = await statfs(place).then(
      (found) => found.type,
      () => undefined,
    );
    if (type !== undefined && !UNFIT.has(type)) return { place, type };
  }
  throw new Error(
    `none of ${candidates.join(', ')} is on a file system that sandboxes can be built on: set TMPDIR to one that is`,
  );
}

/** Makes the first folder for this process that is not there yet, and returns its name. */
async function makeOwn(parent: string): Promise<string> {
  const owner = `${await pidNamespace()}-${process.pid}-${await startTime(process.pid)}`;
  for (let count = 1; ; count += 1) {
    const name = `${owner}-${count}`;
    if (await makeNew(path.join(parent, name), 0o755)) return name;
  }
}

/** False where something of this name is there already. */
async function makeNew(folder: string, mode: number): Promise<boolean> {
  try {
    await mkdir(folder, { mode });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

async function pidNamespace(): Promise<string> {
  return /\d+/.exec(await readlink('/proc/self/ns/pid'))?.[0] ?? '0';
}

async function namesOfDead(names: readonly string[], own: string): Promise<string[]> {
  const dead = [];
  for (const name of names) {
    const [namespace, pid, start, count, ...rest] = name.split('-');
    const isOurs = namespace === own.split('-')[0] && count !== undefined && rest.length === 0;
    if (isOurs && start !== undefined && (await startTime(Number(pid))) !== start) dead.push(name);
  }
  return dead;
}

/** When a process began, in the kernel's ticks; undefined where there is none of this number. */
async function startTime(pid: number): Promise<string | undefined> {
  try {
    // The name of the program, in parentheses, may hold blanks; the numbers come after the last one.
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
