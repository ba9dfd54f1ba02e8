import type { ChildProcess } from 'node:child_process';
import type { DriverExec, DriverExecOptions, TaskExit, TaskHandle } from '../driver.js';
import { exitOf } from './exit.js';
import { launch } from './launch.js';
import { PipeExec } from './pipe-exec.js';
import type { PipeMaker } from './pipes.js';
import type { ProcessTable } from './process-table.js';
import { openPty } from './pty.js';
import type { TaskGuardian } from './task-guardian.js';
import { TtyExec } from './tty-exec.js';

export interface ProcessTaskDeps {
  readonly guardian: TaskGuardian;
  readonly table: ProcessTable;
  readonly pipes: PipeMaker;
  /** The value of the mark variable of this task's processes. */
  readonly mark: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
}

/** How often what is left of a task is looked for before it is given up. */
const KILL_ROUNDS = 50;

/** One running task: its main process, its execs, and whatever these started. */
export class ProcessTask implements TaskHandle {
  readonly exited: Promise<TaskExit>;
  readonly #deps: ProcessTaskDeps;
  /** Session leaders that have not ended. */
  readonly #leaders = new Set<number>();
  readonly #execs = new Set<PipeExec | TtyExec>();
  #killing: Promise<void> | undefined;

  private constructor(deps: ProcessTaskDeps, main: ChildProcess) {
    this.#deps = deps;
    this.#follow(main);
    this.exited = exitOf(main).then((exit) => ({ ...exit, oomKilled: false }));
  }

  static async start(deps: ProcessTaskDeps, command: readonly string[]): Promise<ProcessTask> {
    const { environment, folder } = deps;
    return new ProcessTask(deps, await launch({ command, environment, folder, stdio: 'ignore' }));
  }

  async exec({ command, tty }: DriverExecOptions): Promise<DriverExec> {
    const exec = tty ? await this.#execInTerminal(command) : await this.#execOnPipes(command);
    if (this.#killing) {
      // The task ended while this was being started: it ends like the others.
      await this.#killMembers();
      exec.taskEnded();
    }
    return exec;
  }

  kill(): Promise<void> {
    this.#killing ??= this.#killAll();
    return this.#killing;
  }

  async #execOnPipes(command: readonly string[]): Promise<PipeExec> {
    const { environment, folder } = this.#deps;
    // Where pipes cannot be made, Node's sockets have to do; see pipes.ts for what they lack.
    const pipes = await this.#deps.pipes.take().catch(() => undefined);
    try {
      const child = await launch({ command, environment, folder, stdio: pipes?.stdio ?? 'pipe' });
      return this.#add(new PipeExec(child, pipes?.streams), child);
    } catch (error) {
      pipes?.destroy();
      throw error;
    } finally {
      pipes?.closeChildEnds();
    }
  }

  async #execInTerminal(command: readonly string[]): Promise<TtyExec> {
    const { environment, folder } = this.#deps;
    const pty = openPty(80, 24);
    try {
      const child = await launch({
        command,
        environment: { TERM: 'xterm', ...environment },
        folder,
        stdio: 'ignore',
        terminal: pty.slavePath,
      });
      return this.#add(new TtyExec(child, pty), child);
    } catch (error) {
      pty.close();
      throw error;
    }
  }

  #add<T extends PipeExec | TtyExec>(exec: T, child: ChildProcess): T {
    this.#follow(child);
    this.#execs.add(exec);
    void exec.closed.then(() => this.#execs.delete(exec));
    return exec;
  }

  #follow(child: ChildProcess): void {
    const { pid } = child;
    if (pid === undefined) return;
    this.#leaders.add(pid);
    this.#deps.guardian.watch(pid);
    child.once('exit', () => {
      this.#leaders.delete(pid);
      this.#deps.guardian.unwatch(pid);
    });
  }

  async #killAll(): Promise<void> {
    await this.#killMembers();
    for (const exec of this.#execs) exec.taskEnded();
    await Promise.all([...this.#execs].map((exec) => exec.processEnded));
    for (const exec of this.#execs) exec.dispose();
    this.#execs.clear();
    await this.exited;
  }

  async #killMembers(): Promise<void> {
    const { table, mark } = this.#deps;
    for (let round = 0; round < KILL_ROUNDS; round += 1) {
      const members = await table.membersOf(mark, this.#leaders);
      for (const pid of members) signal(pid);
      for (const leader of this.#leaders) signal(-leader);
      if (members.length === 0 && this.#leaders.size === 0) return;
    }
  }
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it is gone already
  }
}
