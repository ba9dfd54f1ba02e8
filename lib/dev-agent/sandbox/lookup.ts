import type { Stats } from 'node:fs';
import { lstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';

const MOST_LINKS = 40;

/**
 * The file that a command names inside a sandbox, as `execvp` there would find it. Throws with the words of Go's exec
 * package, which Nomad passes on.
 *
 * `root` is the sandbox's root as seen from here. Links are followed by hand: an absolute one means the sandbox's root,
 * while the kernel, asked from here, would take the host's. Synchronous: a handful of look-ups that the kernel answers
 * from memory, before every exec.
 */
export function findExecutable(
  root: string,
  command: string,
  { searchPath, folder }: { searchPath: string; folder: string },
): string {
  if (command.includes('/')) {
    const mode = modeOf(root, path.resolve(folder, command));
    if (mode === undefined) throw new Error(`fork/exec ${command}: no such file or directory`);
    if (!isProgram(mode)) throw new Error(`fork/exec ${command}: permission denied`);
    return command;
  }
  for (const entry of command === '' ? [] : searchPath.split(':')) {
    const candidate = path.resolve(folder, entry, command);
    const mode = modeOf(root, candidate);
    if (mode !== undefined && isProgram(mode)) return candidate;
  }
  throw new Error(`exec: ${JSON.stringify(command)}: executable file not found in $PATH`);
}

function isProgram(mode: number): boolean {
  return (mode & 0o170000) === 0o100000 && (mode & 0o111) !== 0;
}

/** The mode of what `file`, an absolute path inside `root`, is in the end; undefined where there is nothing. */
function modeOf(root: string, file: string): number | undefined {
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
    const found = look(path.join(root, next));
    if (!found) return undefined;
    if (found.isSymbolicLink()) {
      links += 1;
      const target = links > MOST_LINKS ? undefined : targetOf(path.join(root, next));
      if (target === undefined) return undefined;
      if (target.startsWith('/')) resolved = '/';
      pending.push(...target.split('/').reverse());
    } else {
      resolved = next;
      mode = found.mode;
    }
  }
  return mode;
}

function look(file: string): Stats | undefined {
  try {
    return lstatSync(file, { throwIfNoEntry: false });
  } catch {
    return undefined; // below something that is no folder, or the sandbox has ended
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined; // removed in this moment
  }
}
