import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Controller, Hierarchy } from './cgroup-hierarchies.js';
import { CONTROLLERS, enableBelow, openHierarchies } from './cgroup-hierarchies.js';

/**
 * Limits of sandboxes by cgroups of version 1 or 2, whichever the machine has.
 *
 *   <hierarchy>/serai-<agent>/<sandbox>        the limits
 *   <hierarchy>/serai-<agent>/<sandbox>/main   the main process and its children, so that its end has evidence
 *   <hierarchy>/serai-<agent>/<sandbox>/exec   everything else
 */
export interface SandboxLimits {
  readonly memoryMaxMb: number | undefined;
  readonly pidsMax: number;
}

/** The kernel lets go of a cgroup a moment after its last process. */
const REMOVE_ROUNDS = 100;
const REMOVE_PAUSE_MS = 10;

export class Cgroups {
  readonly #hierarchies: readonly Hierarchy[];

  constructor(hierarchies: readonly Hierarchy[]) {
    this.#hierarchies = hierarchies;
  }

  /** Makes the agent's cgroups, and removes those of the agents `dead`. */
  static async open(agent: string, dead: readonly string[]): Promise<Cgroups> {
    const hierarchies = await openHierarchies(`serai-${agent}`);
    for (const { folder } of hierarchies) {
      for (const name of dead) await removeTree(path.join(path.dirname(folder), `serai-${name}`));
    }
    return new Cgroups(hierarchies);
  }

  /** Where they are in the file system. */
  get folders(): readonly string[] {
    return this.#hierarchies.map(({ folder }) => folder);
  }

  /** What cannot be limited on this machine. */
  get missing(): readonly Controller[] {
    return CONTROLLERS.filter((name) => !this.#hierarchies.some((found) => found.controllers.includes(name)));
  }

  /** Makes the cgroups of one sandbox. Leaves none behind when it fails. */
  async create(sandbox: string, limits: SandboxLimits): Promise<SandboxCgroups> {
    const hierarchies = this.#hierarchies.map((found) => ({
      ...found,
      folder: path.join(found.folder, sandbox),
    }));
    const cgroups = new SandboxCgroups(hierarchies);
    try {
      for (const hierarchy of hierarchies) await make(hierarchy, limits);
      return cgroups;
    } catch (error) {
      await cgroups.remove();
      throw error;
    }
  }

  async remove(): Promise<void> {
    for (const { folder } of this.#hierarchies) await removeTree(folder);
  }
}

export class SandboxCgroups {
  readonly #hierarchies: readonly Hierarchy[];

  constructor(hierarchies: readonly Hierarchy[]) {
    this.#hierarchies = hierarchies;
  }

  /** The files to which a process writes 0 to belong to a part of the sandbox. */
  filesOf(part: 'main' | 'exec'): string[] {
    return this.#hierarchies.map(({ folder }) => path.join(folder, part, 'cgroup.procs'));
  }

  /** Makes a process that already runs belong to a part of the sandbox. */
  async add(pid: number, part: 'main' | 'exec'): Promise<void> {
    for (const file of this.filesOf(part)) await writeFile(file, String(pid));
  }

  /** True when the kernel killed a process of the main part for want of memory. */
  async hadOomKill(): Promise<boolean> {
    const memory = this.#hierarchies.find(({ controllers }) => controllers.includes('memory'));
    if (!memory) return false;
    const file = memory.version === 1 ? 'memory.oom_control' : 'memory.events';
    const text = await readFile(path.join(memory.folder, 'main', file), 'utf8').catch(() => '');
    return /^oom_kill [1-9]/m.test(text);
  }

  async remove(): Promise<void> {
    for (const { folder } of this.#hierarchies) await removeTree(folder);
  }
}

async function make({ version, folder, controllers }: Hierarchy, limits: SandboxLimits): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (version === 2) await enableBelow(folder, controllers);
  const bytes = limits.memoryMaxMb === undefined ? undefined : limits.memoryMaxMb * 2 ** 20;
  if (controllers.includes('memory') && bytes !== undefined) {
    const file = version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    await writeFile(path.join(folder, file), String(bytes));
  }
  if (controllers.includes('pids')) await writeFile(path.join(folder, 'pids.max'), String(limits.pidsMax));
  for (const part of ['main', 'exec']) await mkdir(path.join(folder, part), { recursive: true });
}

/** Removes a cgroup and those below it; what still has processes after a while stays. */
async function removeTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(path.join(folder, entry.name));
  for (let round = 0; round < REMOVE_ROUNDS; round += 1) {
    const code = await rmdir(folder).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (code !== 'EBUSY') return;
    await pause(REMOVE_PAUSE_MS);
  }
}
