import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { STANDARD_PATH } from '../process/run.js';

/** The programs that sandboxes are built and entered with, and the Debian package of each. */
const NEEDED: Readonly<Record<string, string>> = {
  bash: 'bash',
  cat: 'coreutils',
  cp: 'coreutils',
  env: 'coreutils',
  mkdir: 'coreutils',
  mknod: 'coreutils',
  rm: 'coreutils',
  find: 'findutils',
  mount: 'mount',
  umount: 'mount',
  nsenter: 'util-linux',
  pivot_root: 'util-linux',
  setpriv: 'util-linux',
  setsid: 'util-linux',
  unshare: 'util-linux',
};

/** True when `name` is a program on the standard path. */
export async function hasTool(name: string): Promise<boolean> {
  for (const folder of STANDARD_PATH.split(':')) {
    try {
      await access(path.join(folder, name), constants.X_OK);
      return true;
    } catch {
      // not in this folder
    }
  }
  return false;
}

/** Throws a sentence that names the first program that is missing and the command that installs it. */
export async function assertTools(): Promise<void> {
  for (const [name, debianPackage] of Object.entries(NEEDED)) {
    if (!(await hasTool(name))) {
      throw new Error(`${name} is missing: apt-get install ${debianPackage}`);
    }
  }
}
