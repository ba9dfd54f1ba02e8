import { throwIfAborted } from '../base/abort.js';
import type { Clock, Timer } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { ExecutionId, Randomness, ReplicaId, RunnerId } from '../base/ids.js';
import { newExecutionId } from '../base/ids.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import type { Logger } from '../base/log.js';
import type { Config } from '../config/config.js';
import type { Environment } from '../environments/environment.js';
import type { Nomad } from '../nomad/api.js';
import type { ClaimedRunner } from '../runners/runner.js';
import type {
  ExecutionRequest,
  ExecutionsApi,
  Exit,
  ExecutionSink,
  PreparedExecution,
  RunningExecution,
} from './api.js';
import { commandRequest, newToken } from './command.js';
import type { Pulse } from './pulse.js';
import { assertRunnable } from './request-check.js';
import { Run } from './run.js';
import type { RunnerBook } from './runner-book.js';
import type { RunnerBooks } from './runner-books.js';
import { exitOfGoneRunner, RUN_TWICE } from './sentences.js';
import type { SessionSource } from './session-source.js';
import { WaitingRoom } from './waiting-room.js';

export interface ExecutionsDeps {
  readonly nomad: Pick<Nomad, 'openExec'>;
  readonly sessions: SessionSource;
  readonly config: Pick<Config, 'execution' | 'runner'>;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly books: RunnerBooks;
  readonly pulse: Pulse;
  /** Goes into the ids of executions; undefined where the service is alone. */
  readonly replica?: ReplicaId | undefined;
  /**
   * Called when a runner that nobody has changed yet shows that the image of its environment cannot run commands as it has
   * to, and, without a reason, when one shows that it can.
   */
  readonly onFitness?: (environment: Environment, reason: string | undefined) => void;
}

/** An execution that runs now, for operators. */
export interface RunningInfo {
  readonly id: ExecutionId;
  readonly interactive: boolean;
  readonly privileged: boolean;
  readonly state: 'opening' | 'asked' | 'running' | 'ended';
}

/** How many ids of a runner are known as taken after their end; an older one is an unknown one. */
const TAKEN_KEPT = 200;

interface Waiting {
  readonly request: ExecutionRequest;
  /** Makes room for others. */
  readonly leave: () => void;
  readonly expiry: Timer;
}

/** The executions of one claimed runner. */
interface Ledger {
  readonly book: RunnerBook;
  readonly waiting: Map<ExecutionId, Waiting>;
  /** Those that take a place. */
  readonly runs: Set<Run>;
  /** Also those of which only the session is left to be closed. */
  readonly uncleared: Set<Run>;
  readonly taken: Set<ExecutionId>;
  readonly forget: () => void;
}

/**
 * All executions: prepared, taken once, run, cleared away.
 *
 *   prepare ──▶ waiting ── take ──▶ taken ── run ──▶ Run (run.ts) ──▶ cleared
 *                  └── expires, or its runner goes ──▶ unknown
 *
 * A prepared execution and one whose processes are still to be ended both take one of the runner's places; prepared ones
 * of all runners are bounded together, too. A runner
 * that goes takes its prepared executions along at once, and each of its runs ends by itself.
 */
export class Executions implements ExecutionsApi, Lifecycle {
  readonly #deps: ExecutionsDeps;
  readonly #ledgers = new Map<RunnerId, Ledger>();
  readonly #runs = new Set<Run>();
  readonly #room: WaitingRoom;
  readonly #stop = new AbortController();
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: ExecutionsDeps) {
    this.#deps = deps;
    this.#room = new WaitingRoom(deps.config.execution.maxPrepared);
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Executions that run, or whose rest is still being cleared away. */
  get active(): number {
    return this.#runs.size;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- nothing to wait for, but a failure is a rejection
  async start(): Promise<void> {
    assertNew('executions', this.#state);
    this.#state = 'running';
  }

  /** Hangs up every execution and resolves once all are cleared away. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  prepare(runner: ClaimedRunner, request: ExecutionRequest): ExecutionId {
    this.#assertRunning();
    throwIfAborted(runner.runnerSignal);
    const { clock, config, randomness, replica } = this.#deps;
    assertRunnable(request, config.execution.maxCommandBytes);
    const ledger = this.#ledgers.get(runner.id) ?? this.#openLedger(runner);
    const { maxPerRunner, preparedTimeout } = config.execution;
    if (ledger.waiting.size + ledger.runs.size >= maxPerRunner) {
      throw new ServiceError(
        'TOO_MANY_EXECUTIONS',
        `runner ${runner.id} has ${maxPerRunner} executions prepared or running; wait until one ends`,
        { details: { runnerId: runner.id, limit: maxPerRunner }, retryAfterSeconds: 1 },
      );
    }
    const leave = this.#room.enter(request);
    const id = newExecutionId(randomness, replica);
    const expiry = clock.setTimer(preparedTimeout * 1000, () => this.#endWaiting(ledger, id));
    ledger.waiting.set(id, { request, leave, expiry });
    return id;
  }

  take(runner: ClaimedRunner, id: ExecutionId): PreparedExecution {
    this.#assertRunning();
    const ledger = this.#ledgers.get(runner.id);
    if (ledger?.taken.has(id)) {
      throw new ServiceError('EXECUTION_TAKEN', `execution ${id} has or had its socket`);
    }
    const waiting = ledger?.waiting.get(id);
    if (!ledger || !waiting) {
      throw new ServiceError(
        'EXECUTION_NOT_FOUND',
        `there is no execution ${id} prepared on runner ${runner.id}`,
      );
    }
    ledger.taken.add(id);
    const [oldest] = ledger.taken;
    if (ledger.taken.size > TAKEN_KEPT && oldest !== undefined) ledger.taken.delete(oldest);
    return { id, run: (sink) => this.#run(ledger, id, sink) };
  }

  /** The executions of one runner that run now. */
  running(id: RunnerId): RunningInfo[] {
    const runs = this.#ledgers.get(id)?.runs ?? [];
    return [...runs].map(({ id, interactive, privileged, state }) => ({
      id,
      interactive,
      privileged,
      state,
    }));
  }

  #assertRunning(): void {
    if (this.#state !== 'running') {
      throw new ServiceError('STOPPED', `executions are ${this.#state}, no command can be run`);
    }
  }

  #openLedger(runner: ClaimedRunner): Ledger {
    const drop = (): void => this.#drop(ledger);
    const ledger: Ledger = {
      book: this.#deps.books.of(runner),
      waiting: new Map(),
      runs: new Set(),
      uncleared: new Set(),
      taken: new Set(),
      forget: () => runner.runnerSignal.removeEventListener('abort', drop),
    };
    runner.runnerSignal.addEventListener('abort', drop, { once: true });
    this.#ledgers.set(runner.id, ledger);
    return ledger;
  }

  /** Forgets a runner; its runs go on to their end without it. */
  #drop(ledger: Ledger): void {
    ledger.forget();
    for (const id of ledger.waiting.keys()) this.#endWaiting(ledger, id);
    this.#ledgers.delete(ledger.book.runner.id);
    if (!ledger.book.runner.runnerSignal.aborted) return;
    for (const run of ledger.uncleared) run.runnerGone();
  }

  #endWaiting({ waiting }: Ledger, id: ExecutionId): void {
    const ended = waiting.get(id);
    ended?.expiry.cancel();
    ended?.leave();
    waiting.delete(id);
  }

  #run(ledger: Ledger, id: ExecutionId, sink: ExecutionSink): RunningExecution {
    const waiting = ledger.waiting.get(id);
    const { runner } = ledger.book;
    if (runner.runnerSignal.aborted) return endedRun(exitOfGoneRunner(runner.runnerSignal));
    if (!waiting || this.#state !== 'running') return endedRun({ kind: 'failed', message: RUN_TWICE });
    // Until here it may expire, so one that is taken and never run holds no place for ever.
    this.#endWaiting(ledger, id);
    const { request } = waiting;
    const { nomad, sessions, clock, log, config, randomness, pulse, onFitness } = this.#deps;
    const run = new Run(
      {
        nomad,
        clock,
        pulse,
        log: log.child({ runnerId: runner.id }),
        command: commandRequest({
          id,
          token: newToken(randomness),
          request,
          config,
          environment: runner.environment,
          user: ledger.book.user,
        }),
        outputLimitBytes: request.outputLimitBytes ?? config.execution.outputLimit,
        lease: (signal) => sessions.lease(ledger.book, request.interactive ? 'terminal' : 'pipe', signal),
        stopSignal: this.#stop.signal,
        reportFitness: (reason) => onFitness?.(runner.environment, reason),
      },
      ledger.book,
      request,
      sink,
    );
    ledger.runs.add(run);
    ledger.uncleared.add(run);
    this.#runs.add(run);
    void run.exit.then((exit) => {
      // Of a command that ended by itself only the session is left to be closed, which is no reason to refuse the next.
      if (exit.kind === 'exited') ledger.runs.delete(run);
    });
    void run.cleared.then(() => {
      ledger.runs.delete(run);
      ledger.uncleared.delete(run);
      this.#runs.delete(run);
    });
    return run;
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    const runs = [...this.#runs];
    for (const run of runs) run.hangUp();
    this.#stop.abort(new ServiceError('STOPPED', 'the service is being stopped'));
    await Promise.all(runs.map((run) => run.cleared));
    for (const ledger of [...this.#ledgers.values()]) this.#drop(ledger);
    this.#state = 'stopped';
  }
}

/** What an execution is that cannot be run. */
function endedRun(exit: Exit): RunningExecution {
  return {
    exit: Promise.resolve(exit),
    cleared: Promise.resolve(),
    write: () => Promise.resolve(),
    closeStdin: () => undefined,
    resize: () => undefined,
    signal: () => Promise.resolve(),
    hangUp: () => undefined,
  };
}
