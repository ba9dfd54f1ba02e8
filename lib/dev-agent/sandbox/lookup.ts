import { lstat, readlink } from 'node:fs/promises';
import path from 'node:path';

const MOST_LINKS = 40;

/**
 * The file that a command names inside a sandbox, as `execvp` there would find it. Throws with the words of Go's exec
 * package, which Nomad passes on.
 *
 * `root` is the sandbox's root as seen from here. Links are followed by hand: an absolute one means the sandbox's root,
 * while the kernel, asked from here, would take the host's.
 */
export async function findExecutable(
  root: string,
  command: string,
  { searchPath, folder }: { searchPath: string; folder: string },
): Promise<string> {
  if (command.includes('/')) {
    const mode = await modeOf(root, path.resolve(folder, command));
    if (mode === undefined) throw new Error(`fork/exec ${command}: no such file or directory`);
    if (!isProgram(mode)) throw new Error(`fork/exec ${command}: permission denied`);
    return command;
  }
  for (const entry of command === '' ? [] : searchPath.split(':')) {
    const candidate = path.resolve(folder, entry, command);
    const mode = await modeOf(root, candidate);
    if (mode !== undefined && isProgram(mode)) return candidate;
  }
  throw new Error(`exec: ${JSON.stringify(command)}: executable file not found in $PATH`);
}

function isProgram(mode: number): boolean {
  return (mode & 0o170000) === 0o100000 && (mode & 0o111) !== 0;
}

/** The mode of what `file`, an absolute path inside `root`, is in the end; undefined where there is nothing. */
async function modeOf(root: string, file: string): Promise<number | undefined> {
  const pending = file.split('/').reverse();
  let resolved = '/';
  let mode: number | undefined;
  let links = 0;
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      resolved = path.dirname(resolved);
      continue;
    }
    const next = path.join(resolved, name);
    const found = await lstat(path.join(root, next)).catch(() => undefined);
    if (!found) return undefined;
    if (found.isSymbolicLink()) {
      links += 1;
      const target = await readlink(path.join(root, next)).catch(() => undefined);
      if (target === undefined || links > MOST_LINKS) return undefined;
      if (target.startsWith('/')) resolved = '/';
      pending.push(...target.split('/').reverse());
    } else {
      resolved = next;
      mode = found.mode;
    }
  }
  return mode;
}
