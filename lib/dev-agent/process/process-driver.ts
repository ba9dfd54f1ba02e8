import { chmod, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Randomness } from '../../base/ids.js';
import { systemRandomness } from '../../base/ids.js';
import type { TaskDriver, TaskHandle, TaskOptions } from '../driver.js';
import { TaskStartError } from '../driver.js';
import { messageOf } from '../../base/errors.js';
import { findExecutable } from './launch.js';
import { PipeMaker } from './pipes.js';
import { MARK_VARIABLE, ProcessTable } from './process-table.js';
import { ProcessTask } from './process-task.js';
import { checkPty } from './pty.js';
import { TaskGuardian } from './task-guardian.js';

/** A command may run as another user than the agent, and has to write into its task's folder. */
const ANYBODY = 0o777;

/**
 * Tasks as ordinary processes of this machine, with a folder of their own as working directory and home.
 *
 * **It does not isolate**: tasks see the machine, its files, its processes and each other; memory limits and network
 * settings are not enforced, and ports are not mapped (each is only given a distinct number). It exists to run the
 * service anywhere, without root and without containers.
 *
 * Nothing outlives it: every process carries a mark in its environment by which it and its descendants are found, and a
 * guardian does the same when the agent is killed.
 */
export class ProcessDriver implements TaskDriver {
  readonly name = 'process';
  readonly #id: string;
  readonly #table = new ProcessTable();
  readonly #tasks = new Set<ProcessTask>();
  readonly #pipes = new PipeMaker();
  #guardian: TaskGuardian | undefined;
  #count = 0;
  #stopping: Promise<void> | undefined;

  constructor({ randomness = systemRandomness }: { randomness?: Randomness } = {}) {
    this.#id = randomness.uuid();
  }

  check(): Promise<void> {
    if (process.platform === 'win32') {
      return Promise.reject(new Error('the process driver needs a POSIX system'));
    }
    checkPty();
    return Promise.resolve();
  }

  async startTask(options: TaskOptions): Promise<TaskHandle> {
    if (this.#stopping) throw new TaskStartError('the driver is stopped');
    this.#guardian ??= new TaskGuardian(this.#id);
    // Taken at once: tasks that start together must not share it, or one takes the others along at its end.
    this.#count += 1;
    const mark = `${this.#id}.${this.#count}`;
    // Beside the allocation's folder, and empty at every start: what a task wrote goes with it.
    const folder = path.join(path.dirname(options.allocFolder), `task-${options.taskName}`);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await chmod(folder, ANYBODY);
    const environment = this.#environment(options, folder, mark);
    const [file = ''] = options.command;
    try {
      findExecutable(file, environment['PATH'] ?? '', folder);
    } catch (error) {
      throw new TaskStartError(`binary ${JSON.stringify(file)} could not be found`, { cause: error });
    }
    try {
      const deps = {
        guardian: this.#guardian,
        table: this.#table,
        pipes: this.#pipes,
        mark,
        environment,
        folder,
      };
      const task = await ProcessTask.start(deps, options.command);
      this.#tasks.add(task);
      void task.exited.then(() => this.#forget(task, folder));
      return task;
    } catch (error) {
      throw new TaskStartError(messageOf(error), { cause: error });
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  async #forget(task: ProcessTask, folder: string): Promise<void> {
    await task.kill();
    this.#tasks.delete(task);
    // What cannot be removed now goes with the allocation's folder.
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }

  async #shutDown(): Promise<void> {
    await Promise.all([...this.#tasks].map((task) => task.kill()));
    await this.#guardian?.stop();
    await this.#pipes.close();
  }

  /** What a task finds in its environment: little of the agent's own, none of its secrets. */
  #environment(options: TaskOptions, folder: string, mark: string): Record<string, string> {
    const kept: Record<string, string> = {};
    for (const name of ['PATH', 'LANG', 'LC_ALL', 'TZ']) {
      const value = process.env[name];
      if (value !== undefined) kept[name] = value;
    }
    return {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ...kept,
      HOME: folder,
      ...options.environment,
      [MARK_VARIABLE]: mark,
    };
  }
}
