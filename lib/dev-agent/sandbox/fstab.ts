import path from 'node:path';
import type { Entry } from './entry.js';
import type { HostView } from './host-view.js';
import type { SharedLayer } from './layer.js';

export interface FstabOptions {
  readonly entry: Pick<Entry, 'kind'>;
  readonly view: HostView;
  readonly layer: Pick<SharedLayer, 'folderFor'>;
  /** The sandbox's own folder; `root` in it becomes its `/`. */
  readonly base: string;
  /** Shown as /alloc and /local. */
  readonly allocFolder: string;
  readonly localFolder: string;
}

/** The folders that the mounts below need in the sandbox's own folder, relative to it. */
export function foldersOf(view: HostView): string[] {
  const stores = view.folders.flatMap((_, index) => [`up/${index}`, `wk/${index}`]);
  const points = [...view.folders.filter((folder) => path.dirname(folder) === '/'), ...view.facts];
  const fresh =
    'alloc dev home home/user local media mnt proc run secrets srv sys tmp var workspace boot'.split(' ');
  return ['workspace', 'home', ...stores, ...[...points, ...fresh].map((name) => path.join('root', name))];
}

/**
 * The mounts of a sandbox as an fstab, so that one `mount --all` makes them all, in this order.
 *
 * Nothing of it has devices or set-user-id programs of the host, but the device nodes of /dev.
 */
export function sandboxFstab(options: FstabOptions): string {
  const { base, view, entry } = options;
  const at = (name: string): string => path.join(base, 'root', name);
  const own = (name: string): string => path.join(base, name);
  const bind = 'bind,nosuid,nodev';
  const rows: Row[] = [[at('.'), at('.'), 'none', bind], ...overlays(options, at)];
  rows.push([own('tmp'), at('tmp'), 'none', bind]);
  if (view.folders.includes('/var')) rows.push([own('vartmp'), at('var/tmp'), 'none', bind]);
  rows.push([own('workspace'), at('workspace'), 'none', bind], [own('home'), at('home/user'), 'none', bind]);
  rows.push(
    [options.allocFolder, at('alloc'), 'none', bind],
    [options.localFolder, at('local'), 'none', bind],
  );
  rows.push([own('secrets'), at('secrets'), 'none', bind], ...devices(entry, at));
  const quiet = 'nosuid,nodev,noexec';
  const made = 'X-mount.mkdir';
  rows.push([
    'devpts',
    at('dev/pts'),
    'devpts',
    `newinstance,ptmxmode=0666,mode=620,gid=5,nosuid,noexec,${made}`,
  ]);
  rows.push(['tmpfs', at('dev/shm'), 'tmpfs', `mode=1777,nosuid,nodev,${made}`]);
  rows.push(['proc', at('proc'), 'proc', quiet]);
  for (const file of view.readOnly) rows.push([at(file), at(file), 'none', `bind,ro,${quiet}`]);
  // Read-only: root of the sandbox could else change the mode of the host's device.
  for (const file of view.empty) rows.push(['/dev/null', at(file), 'none', 'bind,ro,nosuid,noexec']);
  for (const folder of view.facts) rows.push([folder, at(folder), 'none', `bind,ro,${quiet}`]);
  return rows.map((row) => `${row.map(escape).join(' ')} 0 0\n`).join('');
}

type Row = readonly [source: string, target: string, type: string, options: string];

function overlays({ base, view, layer, entry }: FstabOptions, at: (name: string) => string): Row[] {
  const extended = entry.kind === 'unprivileged' ? ',userxattr' : '';
  return view.folders.map((folder, index) => {
    const lower = `lowerdir=${layer.folderFor(folder)}:${folder}`;
    const upper = `upperdir=${base}/up/${index},workdir=${base}/wk/${index}`;
    return ['overlay', at(folder), 'overlay', `${lower},${upper},nosuid,nodev${extended}`];
  });
}

/** Real root makes nodes of its own on a file system of its own; without it, those of the host are bound one by one. */
function devices(entry: Pick<Entry, 'kind'>, at: (name: string) => string): Row[] {
  if (entry.kind === 'root') return [['tmpfs', at('dev'), 'tmpfs', 'mode=755,nosuid,noexec']];
  return ['null', 'zero', 'full', 'random', 'urandom', 'tty'].map((name) => [
    `/dev/${name}`,
    at(`dev/${name}`),
    'none',
    'bind,nosuid,noexec',
  ]);
}

/** Blanks and backslashes in a field of fstab are octal escapes. */
function escape(field: string): string {
  return field.replace(/[\s\\#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
