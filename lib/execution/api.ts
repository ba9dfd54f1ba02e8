import type { ExecutionId } from '../base/ids.js';
import type { ProgramSignal } from '../base/program-signals.js';
import type { ClaimedRunner } from '../runners/runner.js';

/**
 * What the API asks of executions; `Executions` (executions.ts) implements it.
 */
export interface ExecutionRequest {
  /** Runs as `sh -c` would run it, exactly as written. */
  readonly command: string;
  readonly privileged: boolean;
  readonly environment: Readonly<Record<string, string>>;
  /** 0 means none. */
  readonly timeLimitSeconds: number;
  /** Most bytes that the command may print, both streams together; 0 means any number, undefined what is configured. */
  readonly outputLimitBytes: number | undefined;
  readonly interactive: boolean;
  readonly workingDirectory: string | undefined;
}

/** How an execution ended. A hang-up is the client's own end: nobody is left to be told. */
export type Exit =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'time-limit' }
  /** It printed more than it may; the client got exactly as much as it may. */
  | { readonly kind: 'output-limit' }
  | { readonly kind: 'inactive' }
  | { readonly kind: 'out-of-memory' }
  | { readonly kind: 'hang-up' }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * The client's end of a running execution. Calls may throw nothing. `drained` is how a slow client slows its program:
 * after `output` returned false no more is read until it resolves.
 */
export interface ExecutionSink {
  started(): void;
  /** Whole characters, joined across frames. Returns false when the client's buffer is full. */
  output(stream: 'stdout' | 'stderr', text: string): boolean;
  drained(): Promise<void>;
}

export interface RunningExecution {
  /** Resolves once, after all output was given to the sink and nothing of the program can reach the client any more. */
  readonly exit: Promise<Exit>;
  /**
   * Resolves once nothing of the execution is left in the runner that has to be ended, so that it takes no place any more.
   * One that exited by itself takes none from then on.
   */
  readonly cleared: Promise<void>;
  /** Input for the program, as typed. */
  write(chunk: Uint8Array): Promise<void>;
  /** End of the program's input: with a TTY as if Ctrl-D were typed, else the end of the stream. */
  closeStdin(): void;
  resize(columns: number, rows: number): void;
  /**
   * Sends a signal to every process of the command; once it has started, and not after its end. Rejects with
   * EXECUTION_FAILED, or as `openExec` does, where it may not have reached all of them.
   */
  signal(name: ProgramSignal): Promise<void>;
  /** The client left: ends the program and everything that it started. `exit` resolves with `hang-up`. */
  hangUp(): void;
}

export interface ExecutionsApi {
  /**
   * Prepares a command and returns the id under which one socket may run it. Expires after
   * `execution.preparedTimeout` seconds. TOO_MANY_EXECUTIONS, COMMAND_TOO_LARGE, RUNNER_GONE, and INVALID_REQUEST for what no process can
   * be given: a NUL, a name of a variable that is none, or a variable that is too long for the kernel.
   */
  prepare(runner: ClaimedRunner, request: ExecutionRequest): ExecutionId;
  /**
   * Takes a prepared execution, so that no second socket can. EXECUTION_NOT_FOUND for an unknown or expired one,
   * EXECUTION_TAKEN for one that has or had its socket.
   */
  take(runner: ClaimedRunner, id: ExecutionId): PreparedExecution;
}

export interface PreparedExecution {
  readonly id: ExecutionId;
  /** Runs it, once. Never throws: a failure to start is an exit of kind `failed`. */
  run(sink: ExecutionSink): RunningExecution;
}
