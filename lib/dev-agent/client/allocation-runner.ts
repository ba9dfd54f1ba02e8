import path from 'node:path';
import type { TaskHandle } from '../driver.js';
import type { Allocation, ClientStatus, TaskStates } from '../state/records.js';
import { hasNetwork, taskCommand, taskEnvironment } from './task-environment.js';
import { siblingFailed } from './task-events.js';
import type { OpenExec, TaskRunnerDeps } from './task-runner.js';
import { TaskRunner } from './task-runner.js';

/** Where allocations keep their files. */
export interface AllocationFolders {
  /** Folder under which every allocation has its own. */
  readonly base: string;
  readonly make: (folder: string) => Promise<void>;
  readonly remove: (folder: string) => Promise<void>;
}

export interface AllocationRunnerDeps extends TaskRunnerDeps {
  readonly folders: AllocationFolders;
  /** Whether tasks see the paths of the machine, or paths of their own. */
  readonly showsHostPaths: boolean;
  /** Told of every change of a task. */
  readonly onChange: (allocationId: string, urgent: boolean) => void;
}

/** Runs the tasks of one allocation, and keeps the folder that they share while they restart. */
export class AllocationRunner {
  /** Resolves when no task is left. */
  readonly ended: Promise<void>;
  readonly #deps: AllocationRunnerDeps;
  readonly #allocation: Allocation;
  readonly #tasks = new Map<string, TaskRunner>();

  /** `previous` resolves when the allocation that this one replaces has ended: Nomad starts no task before. */
  constructor(deps: AllocationRunnerDeps, allocation: Allocation, previous: Promise<void>) {
    this.#deps = deps;
    this.#allocation = allocation;
    this.ended = this.#run(previous);
  }

  get taskStates(): TaskStates {
    return Object.fromEntries([...this.#tasks].map(([name, task]) => [name, task.state]));
  }

  /** The allocation's own folder. */
  get folder(): string {
    return path.join(this.#deps.folders.base, this.#allocation.ID);
  }

  /** Ends every task; `ended` tells when it is done. */
  stop(): void {
    for (const task of this.#tasks.values()) task.stop();
  }

  /** Restarts one task, or all that run. False where none does. */
  async restart(taskName: string | undefined): Promise<boolean> {
    return this.#some(taskName, (task) => task.restart());
  }

  /** Lets the main process of one task, or of all, die. */
  async die(taskName: string | undefined, options: { oomKilled: boolean }): Promise<boolean> {
    return this.#some(taskName, (task) => task.die(options));
  }

  /** A task by name: undefined where the group has none, `handle` undefined where it does not run. */
  task(
    name: string,
  ): { handle: TaskHandle | undefined; addExec: (exec: OpenExec) => () => void } | undefined {
    const task = this.#tasks.get(name);
    return task && { handle: task.handle, addExec: (exec) => task.addExec(exec) };
  }

  async #some(name: string | undefined, act: (task: TaskRunner) => Promise<boolean>): Promise<boolean> {
    const chosen = [...this.#tasks].filter(([task]) => name === undefined || task === name);
    const done = await Promise.all(chosen.map(([, task]) => act(task)));
    return done.includes(true);
  }

  async #run(previous: Promise<void>): Promise<void> {
    const { Job, TaskGroup, ID } = this.#allocation;
    const group = Job.TaskGroups.find(({ Name }) => Name === TaskGroup);
    const folders = {
      alloc: path.join(this.folder, 'alloc'),
      task: path.join(this.folder, 'local'),
      secrets: path.join(this.folder, 'secrets'),
    };
    const shown = this.#deps.showsHostPaths
      ? folders
      : { alloc: '/alloc', task: '/local', secrets: '/secrets' };
    for (const task of group?.Tasks ?? []) {
      const command = taskCommand(task);
      const { MemoryMB, MemoryMaxMB } = task.Resources;
      const start = group &&
        command && {
          allocationId: ID,
          taskName: task.Name,
          command,
          environment: taskEnvironment(this.#allocation, group, task, shown),
          memoryMaxMb: MemoryMaxMB > 0 ? MemoryMaxMB : MemoryMB,
          networkAccess: hasNetwork(task),
          allocFolder: folders.alloc,
          localFolder: folders.task,
        };
      const runner = new TaskRunner(this.#deps, {
        task,
        jobType: Job.Type,
        start,
        ready: previous,
        prepare: async () => {
          await Promise.all(Object.values(folders).map((folder) => this.#deps.folders.make(folder)));
        },
        onChange: (state, urgent) => {
          this.#deps.onChange(ID, urgent);
          if (state.State === 'dead' && state.Failed) this.#stopSiblings(task.Name);
        },
      });
      this.#tasks.set(task.Name, runner);
    }
    await Promise.all([...this.#tasks.values()].map((task) => task.run()));
  }

  #stopSiblings(failed: string): void {
    for (const [name, task] of this.#tasks) {
      if (name !== failed) task.stop(siblingFailed(this.#deps.timestamps.now(), failed));
    }
  }
}

/** The status of an allocation that follows from its tasks, with Nomad's words for it. */
export function clientStatus(states: TaskStates): { status: ClientStatus; description: string } {
  const all = Object.values(states);
  if (all.some(({ State, Failed }) => State === 'dead' && Failed)) {
    return { status: 'failed', description: 'Failed tasks' };
  }
  if (all.some(({ State }) => State === 'running'))
    return { status: 'running', description: 'Tasks are running' };
  if (all.some(({ State }) => State === 'pending')) {
    return { status: 'pending', description: 'No tasks have started' };
  }
  return { status: 'complete', description: 'All tasks have completed' };
}
