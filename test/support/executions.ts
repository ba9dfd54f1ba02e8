import type { Clock } from '../../lib/base/clock.js';
import { systemClock } from '../../lib/base/clock.js';
import type { Randomness } from '../../lib/base/ids.js';
import { systemRandomness } from '../../lib/base/ids.js';
import { silentLogger } from '../../lib/base/log.js';
import type { ExecutionConfig } from '../../lib/config/config.js';
import type { ExecutionRequest, Exit, RunningExecution } from '../../lib/execution/api.js';
import { ColdSessions } from '../../lib/execution/cold-sessions.js';
import { RunnerBooks } from '../../lib/execution/runner-books.js';
import { Executions } from '../../lib/execution/executions.js';
import type { ExecutionsDeps } from '../../lib/execution/executions.js';
import { SessionFolders } from '../../lib/execution/session-folders.js';
import type { Pulse } from '../../lib/execution/pulse.js';
import type { SessionSource } from '../../lib/execution/session-source.js';
import type { ClaimedRunner } from '../../lib/runners/runner.js';
import { RecordingSink } from './recording-sink.js';

/**
 * Names of a service of its own. Nobody else has them: who opens a session sweeps away what another boot of the same
 * replica has left, and execs of tests are processes of this machine.
 */
export function testFolders(randomness: Randomness = systemRandomness): SessionFolders {
  return new SessionFolders(`test${systemRandomness.uuid().replaceAll('-', '')}`, randomness);
}

/** Of a Nomad that answers. */
export const STEADY_PULSE: Pulse = { answers: () => Promise.resolve(true) };
export const NEVER = new AbortController().signal;

export const EXECUTION_CONFIG: ExecutionConfig = {
  environment: { CODEOCEAN: 'true' },
  interactiveStderr: true,
  maxPerRunner: 4,
  outputLimit: 0,
  maxCommandBytes: 1024 * 1024,
  maxPrepared: 1000,
  preparedTimeout: 60,
  warm: 'off',
  warmParallel: 4,
  maxSessions: 600,
};

export function executionRequest(
  command: string,
  overrides: Partial<ExecutionRequest> = {},
): ExecutionRequest {
  return {
    command,
    privileged: false,
    environment: {},
    timeLimitSeconds: 0,
    outputLimitBytes: undefined,
    interactive: true,
    workingDirectory: undefined,
    ...overrides,
  };
}

export interface ExecutionsOptions extends Pick<ExecutionsDeps, 'nomad'> {
  readonly clock?: Clock;
  readonly execution?: Partial<ExecutionConfig>;
  readonly user?: string;
  /** Default: Nomad answers. */
  readonly pulse?: Pulse;
  readonly stopSignal?: AbortSignal;
  /** Without any, sessions are opened when they are asked for. */
  readonly sessions?: SessionSource;
  readonly onFitness?: NonNullable<ExecutionsDeps['onFitness']>;
}

export async function startExecutions(options: ExecutionsOptions): Promise<Executions> {
  const shared = {
    nomad: options.nomad,
    clock: options.clock ?? systemClock,
    log: silentLogger,
    pulse: options.pulse ?? STEADY_PULSE,
  };
  const executions = new Executions({
    ...shared,
    randomness: systemRandomness,
    sessions: options.sessions ?? new ColdSessions({ ...shared, folders: testFolders() }),
    books: new RunnerBooks({ ...shared, stopSignal: options.stopSignal ?? NEVER }),
    pulse: shared.pulse,
    config: {
      execution: { ...EXECUTION_CONFIG, ...options.execution },
      runner: { user: options.user ?? 'user' },
    },
    ...(options.onFitness && { onFitness: options.onFitness }),
  });
  await executions.start();
  return executions;
}

export interface Begun {
  readonly id: string;
  readonly sink: RecordingSink;
  readonly run: RunningExecution;
}

export function begin(executions: Executions, runner: ClaimedRunner, request: ExecutionRequest): Begun {
  const id = executions.prepare(runner, request);
  const sink = new RecordingSink();
  return { id, sink, run: executions.take(runner, id).run(sink) };
}

export interface Finished {
  readonly id: string;
  readonly exit: Exit;
  readonly stdout: string;
  readonly stderr: string;
}

export async function execute(
  executions: Executions,
  runner: ClaimedRunner,
  request: ExecutionRequest,
): Promise<Finished> {
  const { id, sink, run } = begin(executions, runner, request);
  const exit = await run.exit;
  return { id, exit, stdout: sink.stdout, stderr: sink.stderr };
}
