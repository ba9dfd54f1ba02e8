import type { ChildProcess, StdioOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import type { DriverExec, DriverExecOptions, TaskExit, TaskHandle } from '../driver.js';
import type { ProcessExit } from '../process/exit.js';
import { exitOf } from '../process/exit.js';
import { PipeExec } from '../process/pipe-exec.js';
import { openPty } from '../process/pty.js';
import { TtyExec } from '../process/tty-exec.js';
import { findExecutable } from './lookup.js';
import type { PipeMaker, PipeSet } from '../process/pipes.js';
import { CLEAN_ENVIRONMENT } from '../process/run.js';
import type { Sandbox } from './sandbox.js';
import { silent, withEnvironment } from './script.js';

export interface SandboxTaskDeps {
  readonly sandbox: Sandbox;
  readonly pipes: PipeMaker;
  readonly environment: Readonly<Record<string, string>>;
}

const WORKING_FOLDER = '/workspace';
const COLUMNS = 80;
const ROWS = 24;

/** What nsenter and the shell that waits (script.ts) end with when there is nothing to enter. */
const COULD_NOT_ENTER: ReadonlySet<number> = new Set([1, 125]);

/** A task in a sandbox: the main process and the execs are entered in the same way. When the main one ends, all does. */
export class SandboxTask implements TaskHandle {
  readonly exited: Promise<TaskExit>;
  readonly #deps: SandboxTaskDeps;
  readonly #execs = new Set<PipeExec | TtyExec>();
  #isKilled = false;
  /** True once the main process has ended or is made to. */
  #isOver = false;
  #ending: Promise<void> | undefined;

  private constructor(deps: SandboxTaskDeps, main: ChildProcess) {
    this.#deps = deps;
    this.exited = this.#follow(main);
  }

  /** Rejects with a sentence where the command does not exist; the sandbox is then the caller's to end. */
  static async start(deps: SandboxTaskDeps, command: readonly string[]): Promise<SandboxTask> {
    const words = silent(wordsOf(deps, command));
    const main = await launch(deps.sandbox.enterCommand(words, { part: 'main', tty: false }), 'ignore');
    return new SandboxTask(deps, main);
  }

  async exec({ command, tty }: DriverExecOptions): Promise<DriverExec> {
    const pipes = tty ? undefined : await this.#deps.pipes.take();
    let exec: PipeExec | TtyExec;
    try {
      if (this.#isOver) throw new Error('the task is not running');
      const words = wordsOf(this.#deps, command);
      const line = this.#deps.sandbox.enterCommand(words, { part: 'exec', tty });
      exec = pipes ? await this.#openPipeExec(line, pipes) : await this.#openTtyExec(line);
    } catch (error) {
      pipes?.destroy();
      throw error;
    } finally {
      pipes?.closeChildEnds();
    }
    this.#execs.add(exec);
    void exec.closed.then(() => this.#execs.delete(exec));
    if (this.#ending) exec.taskEnded(); // the task ended while this was being started
    return exec;
  }

  kill(): Promise<void> {
    this.#isKilled = true;
    this.#isOver = true;
    this.#deps.sandbox.kill();
    return this.#end();
  }

  async #follow(main: ChildProcess): Promise<TaskExit> {
    const { exitCode } = await exitOf(main);
    this.#isOver = true;
    const { sandbox } = this.#deps;
    const oomKilled = exitCode === 137 && !this.#isKilled && (await sandbox.cgroups.hadOomKill());
    sandbox.kill();
    await this.#end();
    return { exitCode, signal: 0, oomKilled };
  }

  async #openPipeExec(command: readonly string[], pipes: PipeSet): Promise<PipeExec> {
    const child = await launch(command, pipes.stdio);
    return new PipeExec(child, pipes.streams, this.#exitOf(child));
  }

  /**
   * The terminal is one of the host's, since only the agent can open terminals; the process inside leads its session.
   * Its path does not exist in the sandbox: `tty` says so, while `/dev/tty`, `stty`, job control and resizing work.
   */
  async #openTtyExec(command: readonly string[]): Promise<TtyExec> {
    const pty = openPty(COLUMNS, ROWS);
    try {
      const slave = openSync(pty.slavePath, constants.O_RDWR | constants.O_NOCTTY);
      try {
        const child = await launch(command, ['ignore', slave, slave]);
        return new TtyExec(child, pty, this.#exitOf(child));
      } finally {
        closeSync(slave);
      }
    } catch (error) {
      pty.close();
      throw error;
    }
  }

  /** A command that could not enter, since the task ended in that moment, ended with the task. */
  async #exitOf(child: ChildProcess): Promise<ProcessExit> {
    const exit = await exitOf(child);
    return this.#isOver && COULD_NOT_ENTER.has(exit.exitCode) ? { exitCode: 137, signal: 0 } : exit;
  }

  #end(): Promise<void> {
    this.#ending ??= this.#finish();
    return this.#ending;
  }

  /** Waits until nothing runs. What an exec has not delivered by then, to a reader that holds it back, is dropped. */
  async #finish(): Promise<void> {
    await this.#deps.sandbox.ended;
    for (const exec of this.#execs) exec.taskEnded();
    await Promise.all([...this.#execs].map((exec) => exec.processEnded));
    for (const exec of this.#execs) exec.dispose();
    this.#execs.clear();
  }
}

function wordsOf({ sandbox, environment }: SandboxTaskDeps, command: readonly string[]): string[] {
  const [file = '', ...args] = command;
  const searchPath = environment['PATH'] ?? '';
  const found = findExecutable(sandbox.root, file, { searchPath, folder: WORKING_FOLDER });
  // The name as it was given, so that the program sees it; a name that could be taken for an option is made a path.
  return withEnvironment([file.startsWith('-') ? found : file, ...args], environment);
}

/** Starts a command in a session of its own, with an environment that tells nothing of the agent. */
function launch(command: readonly string[], stdio: StdioOptions): Promise<ChildProcess> {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { stdio, cwd: '/', env: CLEAN_ENVIRONMENT, detached: true });
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child));
    child.once('error', reject);
  });
}
