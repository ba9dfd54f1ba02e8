import { chmod, link, mkdir, readFile, symlink, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SandboxUser } from './accounts.js';
import { sandboxAccounts } from './accounts.js';
import type { Entry } from './entry.js';
import type { HostView } from './host-view.js';
import { isWithin } from './mount-table.js';
import { run } from '../process/run.js';

/**
 * The layer between the host's folders and what a sandbox writes: made once for an agent and shared by its sandboxes.
 *
 * It replaces the account and network files of /etc, and hides by whiteouts (character devices 0:0, as overlayfs takes
 * them) what root of a sandbox could read though an ordinary user of the host cannot (keys, logs, databases), sockets,
 * and paths that the agent names.
 */
export interface SharedLayer {
  readonly user: SandboxUser;
  /** The folder of the layer that covers this folder of the host. */
  folderFor(hostFolder: string): string;
  /** Holds what `/dev` has beside device nodes. */
  readonly devTemplate: string;
}

/** Folders that hold secrets of the host; programs to run are not among them. */
const SEARCHED = ['/etc', '/opt', '/var'];

const NOT_FOR_ALL = [
  ...['(', '-type', 'd', '!', '-perm', '-o=rx', ')'],
  ...['-o', '(', '-type', 'f', '!', '-perm', '-o=r', ')'],
  ...['-o', '-type', 's', '-o', '-type', 'p'],
];

export interface SharedLayerOptions {
  /** Becomes the layer; does not exist yet. */
  readonly folder: string;
  readonly entry: Entry;
  readonly view: HostView;
  readonly hidden: readonly string[];
}

export async function buildSharedLayer(options: SharedLayerOptions): Promise<SharedLayer> {
  const { folder, view } = options;
  const folderFor = (hostFolder: string): string => path.join(folder, hostFolder);
  for (const shown of view.folders) await mkdir(folderFor(shown), { recursive: true });
  const devTemplate = path.join(folder, 'dev');
  await mkdir(devTemplate);
  const devLinks = { ptmx: 'pts/ptmx', fd: '/proc/self/fd', stdin: 'fd/0', stdout: 'fd/1', stderr: 'fd/2' };
  for (const [name, target] of Object.entries(devLinks)) await symlink(target, path.join(devTemplate, name));
  await hide(options, folderFor);
  return { user: await writeEtc(folderFor('/etc')), folderFor, devTemplate };
}

async function hide(
  { folder, entry, view, hidden }: SharedLayerOptions,
  folderFor: (hostFolder: string) => string,
): Promise<void> {
  const whiteout = path.join(folder, 'whiteout');
  await run(entry.wrap(['mknod', whiteout, 'c', '0', '0']));
  const own = hidden.filter((file) => view.folders.some((shown) => file !== shown && isWithin(file, shown)));
  for (const file of new Set([...own, ...(await findNotForAll(view))])) {
    // The folder of the innermost overlay that shows the file.
    const shown = view.folders.findLast((candidate) => isWithin(file, candidate));
    if (shown === undefined || shown === file) continue;
    const target = path.join(folderFor(shown), path.relative(shown, file));
    await mkdir(path.dirname(target), { recursive: true });
    await link(whiteout, target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST' && error.code !== 'ENOTDIR') throw error;
    });
  }
}

async function findNotForAll(view: HostView): Promise<string[]> {
  const searched = view.folders.filter((folder) => SEARCHED.some((root) => isWithin(folder, root)));
  if (searched.length === 0) return [];
  // Files may vanish while find looks, and some it may not see: what it found counts, whatever its exit code.
  const command = ['find', ...searched, '-xdev', '(', ...NOT_FOR_ALL, ')', '-prune', '-print0'];
  const found = await run(['sh', '-c', '"$@" 2>/dev/null; exit 0', 'find', ...command]);
  return found
    .toString()
    .split('\0')
    .filter((file) => file !== '');
}

async function writeEtc(folder: string): Promise<SandboxUser> {
  const [passwd, group, hosts, resolver] = await Promise.all(
    ['/etc/passwd', '/etc/group', '/etc/hosts', '/etc/resolv.conf'].map((file) =>
      readFile(file, 'utf8').catch(() => ''),
    ),
  );
  const { user, files } = sandboxAccounts({ passwd: passwd ?? '', group: group ?? '' });
  const local = '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n';
  const texts = {
    ...files,
    hosts: hosts === '' ? local : `${hosts}`,
    'resolv.conf': resolver ?? '',
    hostname: '',
  };
  for (const [name, text] of Object.entries(texts)) {
    const file = path.join(folder, name);
    // In the place of a secret of the host there is a whiteout.
    await unlink(file).catch(() => undefined);
    await writeFile(file, text.endsWith('\n') || text === '' ? text : `${text}\n`);
    await chmod(file, name.includes('shadow') ? 0o640 : 0o644);
  }
  return user;
}
