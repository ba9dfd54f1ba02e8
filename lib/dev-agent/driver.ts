/**
 * What the agent asks of a task driver. A driver knows processes; it knows nothing of jobs, HTTP or WebSockets.
 */
export interface TaskDriver {
  readonly name: 'sandbox' | 'process' | 'simulated';
  /** Throws, with a sentence for people, where this machine cannot run the driver. */
  check(): Promise<void>;
  /** Starts a task and resolves once it runs. Rejects with a TaskStartError where its command cannot be started. */
  startTask(options: TaskOptions): Promise<TaskHandle>;
  /** Ends every task that is left and removes what the driver made on the machine. Never rejects. */
  stop(): Promise<void>;
}

export interface TaskOptions {
  readonly allocationId: string;
  readonly taskName: string;
  /** Argument vector of the main process. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Megabytes; undefined for no limit. */
  readonly memoryMaxMb: number | undefined;
  readonly networkAccess: boolean;
  /** The allocation's folder, kept over restarts of the task; the driver shows it inside as `/alloc` where it can. */
  readonly allocFolder: string;
  /** The task's folder, kept likewise; shown as `/local`. Default: `local` in the allocation's folder. */
  readonly localFolder?: string;
}

export interface TaskHandle {
  /** Resolves when the main process ends. */
  readonly exited: Promise<TaskExit>;
  /** Starts a further process in the task. Rejects with a sentence where the command does not exist. */
  exec(options: DriverExecOptions): Promise<DriverExec>;
  /** Ends the main process and everything in the task; resolves when all is dead. Never rejects. */
  kill(): Promise<void>;
}

export interface TaskExit {
  readonly exitCode: number;
  readonly signal: number;
  readonly oomKilled: boolean;
}

export interface DriverExecOptions {
  readonly command: readonly string[];
  readonly tty: boolean;
}

/** One process in a task. With a TTY, everything arrives as stdout and `\n` as `\r\n`, as the terminal makes it. */
export interface DriverExec {
  onOutput(handler: (stream: 'stdout' | 'stderr', chunk: Buffer) => void): void;
  /**
   * Resolves with the exit code (128 + n for signal n) once the process ended and its output is read to the end. As
   * with Nomad's raw_exec, a process without a TTY whose standard input is still open is reported only after it closed.
   */
  readonly exitCode: Promise<number>;
  /** Queues input. A driver that knows when its buffer is low enough for more returns a promise for that moment. */
  write(chunk: Buffer): void | Promise<void>;
  closeStdin(): void;
  resize(columns: number, rows: number): void;
  pause(): void;
  resume(): void;
  /** The client left. The process may live on, as it does on a real Nomad; only the reading end goes. */
  abandon(): void;
}

export class TaskStartError extends Error {
  override readonly name = 'TaskStartError';
}
