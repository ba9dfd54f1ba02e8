import type { Clock } from '../../base/clock.js';
import type {
  DriverExec,
  DriverExecOptions,
  TaskDriver,
  TaskExit,
  TaskHandle,
  TaskOptions,
} from '../driver.js';
import { findProgram } from './programs.js';
import { SimulatedExec, sleep } from './simulated-exec.js';

/**
 * Tasks without any process, for tests with thousands of runners: a task is an object that says that it runs, an exec
 * one of a few built-in programs.
 */
export class SimulatedDriver implements TaskDriver {
  readonly name = 'simulated';
  readonly #clock: Clock;
  readonly #tasks = new Set<SimulatedTask>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  check(): Promise<void> {
    return Promise.resolve();
  }

  startTask({ command }: TaskOptions): Promise<TaskHandle> {
    const task = new SimulatedTask(this.#clock, command);
    this.#tasks.add(task);
    void task.exited.then(() => this.#tasks.delete(task));
    return Promise.resolve(task);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#tasks].map((task) => task.kill()));
  }
}

const KILLED: TaskExit = { exitCode: 137, signal: 9, oomKilled: false };

class SimulatedTask implements TaskHandle {
  readonly exited: Promise<TaskExit>;
  readonly #clock: Clock;
  readonly #execs = new Set<SimulatedExec>();
  readonly #killed = new AbortController();

  constructor(clock: Clock, command: readonly string[]) {
    this.#clock = clock;
    this.exited = this.#run(command);
  }

  exec(options: DriverExecOptions): Promise<DriverExec> {
    const [file = ''] = options.command;
    if (!findProgram(file)) {
      const problem = `exec: ${JSON.stringify(file)}: executable file not found in $PATH`;
      return Promise.reject(new Error(problem));
    }
    const exec = new SimulatedExec(options, this.#clock);
    this.#execs.add(exec);
    void exec.exitCode.then(() => this.#execs.delete(exec));
    return Promise.resolve(exec);
  }

  async kill(): Promise<void> {
    this.#killed.abort();
    for (const exec of this.#execs) exec.end(KILLED.exitCode);
    await this.exited;
  }

  /** Runs the main command if it is one of the built-in ones; any other goes on until it is killed. */
  async #run([file = '', ...args]: readonly string[]): Promise<TaskExit> {
    const { signal } = this.#killed;
    const nothing = (): void => undefined;
    const exitCode = await (findProgram(file) ?? forEver)(args, {
      stdout: nothing,
      stderr: nothing,
      read: () => Promise.resolve(undefined),
      sleep: (ms) => sleep(this.#clock, ms, signal),
    });
    return signal.aborted ? KILLED : { exitCode, signal: 0, oomKilled: false };
  }
}

const forEver: NonNullable<ReturnType<typeof findProgram>> = async (_args, io) => {
  await io.sleep(Infinity);
  return 0;
};
