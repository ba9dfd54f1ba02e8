import { chmod, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../base/errors.js';
import type { Logger } from '../../base/log.js';
import type { TaskDriver, TaskHandle, TaskOptions } from '../driver.js';
import { TaskStartError } from '../driver.js';
import type { Workshop } from './workshop.js';
import { openWorkshop } from './workshop.js';
import { Sandbox } from './sandbox.js';
import { SandboxTask } from './sandbox-task.js';
import { BASE_ENVIRONMENT } from './script.js';

const PIDS_MAX = 256;

/** The folder of this package, whether it runs from its source or built. */
const PACKAGE = path.resolve(import.meta.dirname, '../../..');

export interface SandboxDriverOptions {
  readonly log: Logger;
  /** Paths of the host that no sandbox may see, beside this program's own files. */
  readonly hidden?: readonly string[];
  /** Folders in one of which sandboxes may keep their files, best first; those of the system for temporary files. */
  readonly folders?: readonly string[];
}

/**
 * Tasks in sandboxes: namespaces of their own over a copy-on-write view of the host.
 *
 * Inside are the host's `/usr`, `/etc`, `/opt` and `/var` (and `/bin` and the like), a fresh `/proc`, `/dev`, `/tmp`,
 * `/home/user`, `/alloc`, `/local` and `/secrets`, and `/workspace`, the working folder, which belongs to `user`.
 * Whatever else the host has at its top level does not exist there. Without network access there is a loopback
 * interface and nothing else; **with it the host's network is shared**, its loopback and its abstract sockets included.
 *
 * Folders that a task is given must lie where only their owner can enter, as the agent's do: what root of a sandbox
 * leaves there, set-user-id programs among them, would else be there for every user of the host.
 *
 * An ordinary user in a sandbox is confined well. Root in a sandbox is confined by what the kernel does for namespaces,
 * as in a container without a profile for system calls.
 */
export class SandboxDriver implements TaskDriver {
  readonly name = 'sandbox';
  readonly #options: SandboxDriverOptions;
  readonly #tasks = new Set<SandboxTask>();
  readonly #starts = new Set<Promise<unknown>>();
  /** Tasks that are not over and cleared away. */
  readonly #ends = new Set<Promise<unknown>>();
  #workshop: Promise<Workshop> | undefined;
  #checked: Promise<void> | undefined;
  #count = 0;
  #stopping: Promise<void> | undefined;

  constructor(options: SandboxDriverOptions) {
    this.#options = options;
  }

  /** Builds a sandbox and runs a program in it; what fails there is what the machine lacks. Once good, it stays so. */
  check(): Promise<void> {
    this.#checked ??= this.#try().catch(async (error: unknown) => {
      this.#checked = undefined;
      await this.#close();
      throw error;
    });
    return this.#checked;
  }

  async startTask(options: TaskOptions): Promise<TaskHandle> {
    if (this.#stopping) throw new TaskStartError('the driver is stopped');
    return await during(this.#starts, this.#start(options));
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  async #try(): Promise<void> {
    const { folder } = await this.#open();
    const task = await this.startTask({
      allocationId: 'check',
      taskName: 'check',
      command: ['sleep', 'infinity'],
      environment: {},
      memoryMaxMb: undefined,
      networkAccess: false,
      allocFolder: path.join(folder, 'check'),
    });
    try {
      const exec = await task.exec({ command: ['true'], tty: false });
      exec.closeStdin();
      const exitCode = await exec.exitCode;
      if (exitCode !== 0) throw new Error(`a program in a trial sandbox ended with ${exitCode}`);
    } finally {
      await task.kill();
    }
  }

  /** A failure is not kept: what was missing may be there the next time. */
  #open(): Promise<Workshop> {
    if (!this.#workshop) {
      const opening = openWorkshop({ ...this.#options, hidden: [PACKAGE, ...(this.#options.hidden ?? [])] });
      this.#workshop = opening;
      opening.catch(() => {
        if (this.#workshop === opening) this.#workshop = undefined;
      });
    }
    return this.#workshop;
  }

  async #start(options: TaskOptions): Promise<TaskHandle> {
    const { allocFolder, command, networkAccess, memoryMaxMb } = options;
    try {
      const workshop = await this.#open();
      this.#count += 1;
      const sandbox = await Sandbox.start(workshop, {
        name: String(this.#count),
        hostname: hostnameOf(options.allocationId),
        networkAccess,
        allocFolder,
        localFolder: await makeLocalFolder(options),
        limits: { memoryMaxMb, pidsMax: PIDS_MAX },
      });
      try {
        const environment = { ...BASE_ENVIRONMENT, ...options.environment };
        const task = await SandboxTask.start({ sandbox, pipes: workshop.pipes, environment }, command);
        this.#tasks.add(task);
        void during(this.#ends, this.#follow(task, sandbox));
        return task;
      } catch (error) {
        await sandbox.destroy();
        throw error;
      }
    } catch (error) {
      throw new TaskStartError(messageOf(error), { cause: error });
    }
  }

  async #follow(task: SandboxTask, sandbox: Sandbox): Promise<void> {
    await task.exited;
    this.#tasks.delete(task);
    await sandbox.destroy();
  }

  async #shutDown(): Promise<void> {
    // A start under way ends with a task or with nothing.
    await Promise.allSettled(this.#starts);
    for (const task of this.#tasks) void task.kill();
    await Promise.allSettled(this.#ends);
    await this.#close();
  }

  async #close(): Promise<void> {
    const opened = this.#workshop;
    this.#workshop = undefined;
    const workshop = await opened?.catch(() => undefined); // one that did not open left nothing
    await workshop?.[Symbol.asyncDispose]();
  }
}

/** Keeps `work` in the set until it has settled. */
async function during<T>(set: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  set.add(work);
  try {
    return await work;
  } finally {
    set.delete(work);
  }
}

/** A name that a host may have, the same for every start of an allocation. */
function hostnameOf(allocationId: string): string {
  return `runner-${allocationId.replace(/[^A-Za-z0-9]/g, '').slice(0, 8) || '0'}`;
}

/** What `/local` shows; anybody in the sandbox may write there, as on a real Nomad. */
async function makeLocalFolder({ allocFolder, localFolder }: TaskOptions): Promise<string> {
  const folder = localFolder ?? path.join(allocFolder, 'local');
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o777);
  return folder;
}
