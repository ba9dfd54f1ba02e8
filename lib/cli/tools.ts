import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import path from 'node:path';

/** Where tasks look for programs, whatever the one who starts the agent has in PATH. */
const SYSTEM_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Folders of the machine that a sandbox does not show. */
const HIDDEN = ['/root', '/home', '/run', '/mnt'];

export interface ToolLookup {
  /** PATH of this process. */
  readonly path: string | undefined;
  /** Tasks see only part of the machine, so a tool has to lie where they do. */
  readonly isSandboxed: boolean;
}

/** Those of `tools` that a task on this machine would not find. */
export async function missingTools(tools: readonly string[], lookup: ToolLookup): Promise<string[]> {
  const found = await Promise.all(tools.map((tool) => isThere(tool, lookup)));
  return tools.filter((_, index) => !found[index]);
}

async function isThere(tool: string, { path: own = '', isSandboxed }: ToolLookup): Promise<boolean> {
  const folders = isSandboxed ? SYSTEM_PATH : [...own.split(path.delimiter), ...SYSTEM_PATH];
  for (const folder of folders.filter((each) => path.isAbsolute(each))) {
    const file = await executableAt(path.join(folder, tool));
    const isHidden = HIDDEN.some((hidden) => file?.startsWith(`${hidden}/`));
    if (file !== undefined && !(isSandboxed && isHidden)) return true;
  }
  return false;
}

async function executableAt(file: string): Promise<string | undefined> {
  try {
    await access(file, constants.X_OK);
    const real = await realpath(file);
    return (await stat(real)).isFile() ? real : undefined;
  } catch {
    return undefined; // not there, or not for us: the same here
  }
}
