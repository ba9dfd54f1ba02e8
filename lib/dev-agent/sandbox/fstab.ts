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

const QUIET = 'nosuid,nodev,noexec';
/** The place of the mount is made where it is not there. */
const MADE = 'X-mount.mkdir';
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];

/**
 * The mounts of a sandbox as an fstab, so that one `mount --all` makes them all, in this order.
 *
 * Nothing of it has devices or set-user-id programs of the host, but the device nodes of /dev.
 */
export function sandboxFstab(options: FstabOptions): string {
  const { base, view, entry, allocFolder, localFolder } = options;
  const at = (name: string): string => path.join(base, 'root', name);
  const own = (name: string): string => path.join(base, name);
  const bind = (source: string, target: string, more = 'nosuid,nodev'): Row => [
    source,
    at(target),
    'none',
    `bind,${more}`,
  ];
  const rows: Row[] = [
    bind(at('.'), '.'),
    ...overlays(options, at),
    bind(own('tmp'), 'tmp'),
    bind(own('vartmp'), 'var/tmp', `nosuid,nodev,${MADE}`),
    bind(own('workspace'), 'workspace'),
    bind(own('home'), 'home/user'),
    bind(allocFolder, 'alloc'),
    bind(localFolder, 'local'),
    bind(own('secrets'), 'secrets'),
    // Real root makes nodes on a file system of its own; without it, those of the host are bound one by one.
    ...(entry.kind === 'root'
      ? [['tmpfs', at('dev'), 'tmpfs', 'mode=755,nosuid,noexec'] as const]
      : DEVICES.map((name) => bind(`/dev/${name}`, `dev/${name}`, 'nosuid,noexec'))),
    ['devpts', at('dev/pts'), 'devpts', `newinstance,ptmxmode=0666,mode=620,gid=5,nosuid,noexec,${MADE}`],
    ['tmpfs', at('dev/shm'), 'tmpfs', `mode=1777,nosuid,nodev,${MADE}`],
    ['proc', at('proc'), 'proc', QUIET],
    ...view.readOnly.map((file) => bind(at(file), file, `ro,${QUIET}`)),
    // Read-only: root of the sandbox could else change the mode of the host's device.
    ...view.empty.map((file) => bind('/dev/null', file, 'ro,nosuid,noexec')),
    ...view.facts.map((folder) => bind(folder, folder, `ro,${QUIET}`)),
  ];
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

/** Blanks and backslashes in a field of fstab are octal escapes. */
function escape(field: string): string {
  return field.replace(/[\s\\#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
