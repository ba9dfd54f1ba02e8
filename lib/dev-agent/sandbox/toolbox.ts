import type { FileHandle } from 'node:fs/promises';
import { readFile } from 'node:fs/promises';
import { Dialogue } from '../process/dialogue.js';
import { openNamespace } from './entry.js';
import { isDisk, isWithin, parseMountInfo } from './mount-table.js';

/**
 * A mount namespace like the host's, but with the host's programs read-only.
 *
 * A process that enters a sandbox is seen there for a moment while it still runs a program of the host, and root of
 * the sandbox, who has the number of the real root, could open that program by /proc/<pid>/exe and write to it. From a
 * read-only mount it cannot.
 *
 * The namespace needs no process: it lives as long as the agent holds it open. What the host unmounts is unmounted there
 * too, so that it holds no disk.
 */
const SCRIPT = `
for mount_point; do mount -o remount,bind,ro "$mount_point" || exit 1; done
echo ready
read -r _
`;

const PROGRAM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/opt'];

export async function openToolbox(): Promise<FileHandle> {
  const mounts = parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8'))
    .filter(isDisk)
    .map(({ mountPoint }) => mountPoint)
    .filter((point) => point === '/' || PROGRAM_FOLDERS.some((folder) => isWithin(point, folder)));
  const shell = ['sh', '-c', SCRIPT, 'toolbox', ...new Set(mounts)];
  const dialogue = await Dialogue.open(['unshare', '--mount', '--propagation', 'slave', ...shell]);
  try {
    await dialogue.expect('ready');
    return await openNamespace(dialogue.pid, 'mnt');
  } finally {
    await dialogue.close();
  }
}
