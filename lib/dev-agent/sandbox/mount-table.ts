/** One mount of /proc/self/mountinfo. */
export interface MountRow {
  readonly mountPoint: string;
  readonly type: string;
  /** Options of the file system itself, such as the controllers of a cgroup hierarchy. */
  readonly superOptions: readonly string[];
}

/** File systems that hold files of the host, in contrast to kernel interfaces. */
const DISKS = new Set(
  'bcachefs btrfs ecryptfs erofs ext2 ext3 ext4 f2fs jfs nfs nfs4 ntfs3 overlay squashfs tmpfs virtiofs xfs zfs'.split(
    ' ',
  ),
);

/** Reads the format of proc(5): blanks in paths are octal escapes, and optional fields end with a lone hyphen. */
export function parseMountInfo(text: string): MountRow[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ', 2);
      const mountPoint = unescapeOctal(before.split(' ')[4] ?? '');
      const [type = '', , superOptions = ''] = after.split(' ');
      return { mountPoint, type, superOptions: superOptions.split(',') };
    });
}

export function isDisk(row: MountRow): boolean {
  return DISKS.has(row.type);
}

/** True when `file` is `folder` or lies in it. */
export function isWithin(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder === '/' ? '/' : `${folder}/`);
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
