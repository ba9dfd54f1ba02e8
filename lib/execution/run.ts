import type { Deadline } from '../base/abort.js';
import { deadline } from '../base/abort.js';
import type { Timer } from '../base/clock.js';
import type { ExecutionId } from '../base/ids.js';
import type { ProgramSignal } from '../base/program-signals.js';
import type { RunnerProcess } from '../shell/frames.js';
import type { Exit, ExecutionRequest, ExecutionSink, RunningExecution } from './api.js';
import { CommandOutput } from './command-output.js';
import type { RunnerBook } from './runner-book.js';
import {
  concernsEnvironment,
  CONNECTION_LOST,
  exitOfGoneRunner,
  NOMAD_SILENT,
  NOT_STARTED,
  openFailureSentence,
  refusalSentence,
  RUNNER_LOST,
  START_TOO_SLOW,
} from './sentences.js';
import type { CommandEnd, CommandSession } from './session.js';
import type { RunDeps } from './run-deps.js';
import type { SessionLease } from './session-source.js';
import { SignalQueue } from './signals.js';
import { SilenceWatch } from './silence.js';

/** From the client's socket to the first sign of the command. */
const START_MS = 15_000;
/** How long Nomad gets to say that a runner died, when a command ended as it would then. */
const NEWS_MS = 500;

type RunState =
  | { readonly name: 'opening' }
  | { readonly name: 'asked'; readonly session: CommandSession }
  | { readonly name: 'running'; readonly session: CommandSession; readonly sinceMs: number }
  | { readonly name: 'ended'; readonly exit: Exit };

/**
 * One run of a command, from the client's socket to the last process.
 *
 *   opening ── session open ──▶ asked ── first sign ──▶ running ── the command's end ──▶ ended
 *      └──────────────┬───────────┘                       │
 *                     └── time or output limit, client or runner gone, exec lost ──▶ ended
 *
 * `#finish` is the only way to `ended` and wins once; after it nothing reaches the sink. What is left in the runner is
 * cleared behind the client's back: a command that ended by itself leaves its session to be closed; of any other every
 * process is ended first; a runner that is gone needs neither.
 */
export class Run implements RunningExecution {
  readonly id: ExecutionId;
  readonly exit: Promise<Exit>;
  /** Resolves once nothing of the run is left: no process that it must end, no socket, no timer. */
  readonly cleared: Promise<void>;
  readonly interactive: boolean;
  readonly privileged: boolean;
  readonly #deps: RunDeps;
  readonly #book: RunnerBook;
  readonly #sink: ExecutionSink;
  readonly #limitMs: number;
  readonly #output: CommandOutput;
  readonly #signals = new SignalQueue(async (name) => {
    if (this.state === 'running') await this.#book.signal(this, name);
  });
  readonly #startedAtMs: number;
  /** Resolves when input can be passed on, or need not be any more. */
  readonly #ready: Promise<void>;
  #openGate: () => void = () => undefined;
  #resolveExit: (exit: Exit) => void = () => undefined;
  #state: RunState = { name: 'opening' };
  #session: CommandSession | undefined;
  #size: { readonly columns: number; readonly rows: number } | undefined;
  #startLimit: Deadline;
  readonly #silence: SilenceWatch;
  #timeLimit: Timer | undefined;
  /** Nomad says that the task is no longer the one in which the command ran. */
  #taskGone = false;
  /** The runner did not begin the command, so nothing of it is there. */
  #isRefused = false;

  constructor(deps: RunDeps, book: RunnerBook, request: ExecutionRequest, sink: ExecutionSink) {
    this.#deps = deps;
    this.#book = book;
    this.#sink = sink;
    this.#output = new CommandOutput({ sink, limitBytes: deps.outputLimitBytes });
    this.id = deps.command.id as ExecutionId;
    this.interactive = request.interactive;
    this.privileged = request.privileged;
    this.#limitMs = request.timeLimitSeconds * 1000;
    this.#startedAtMs = deps.clock.monotonicMs();
    this.exit = new Promise((resolve) => {
      this.#resolveExit = resolve;
    });
    this.#ready = new Promise((resolve) => {
      this.#openGate = resolve;
    });
    this.#startLimit = deadline(deps.clock, START_MS, 'EXECUTION_FAILED', START_TOO_SLOW);
    this.#silence = new SilenceWatch({
      pulse: deps.pulse,
      clock: deps.clock,
      onSilent: () => this.#finish({ kind: 'failed', message: NOMAD_SILENT }),
    });
    this.cleared = this.#perform();
  }

  /** The shell in the runner that started the command. */
  get root(): RunnerProcess | undefined {
    return this.#session?.root;
  }

  get state(): RunState['name'] {
    return this.#state.name;
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#ready;
    if (this.#state.name === 'running') await this.#state.session.write(chunk);
  }

  closeStdin(): void {
    void this.#ready.then(() => {
      if (this.#state.name === 'running') this.#state.session.closeStdin();
    });
  }

  resize(columns: number, rows: number): void {
    this.#size = { columns, rows };
    this.#session?.resize(columns, rows);
  }

  async signal(name: ProgramSignal): Promise<void> {
    await this.#ready;
    if (this.#state.name === 'running') await this.#signals.add(name);
  }

  hangUp(): void {
    this.#finish({ kind: 'hang-up' });
  }

  /** The runner is no longer its client's: whoever watches `runnerSignal` for all runs of a runner tells. */
  runnerGone(): void {
    this.#finish(exitOfGoneRunner(this.#book.runner.runnerSignal));
  }

  async #perform(): Promise<void> {
    const { runner } = this.#book;
    const { runnerSignal } = runner;
    const endActivity = runner.beginActivity();
    const onSlow = (): void => this.#finish({ kind: 'failed', message: START_TOO_SLOW });
    this.#startLimit.signal.addEventListener('abort', onSlow, { once: true });
    if (runnerSignal.aborted) this.runnerGone();
    try {
      await this.#book.enter(this);
      await this.#runInSession();
    } finally {
      await this.#signals.idle();
      await this.#book.leave(this);
      endActivity();
    }
  }

  async #runInSession(): Promise<void> {
    const { runnerSignal } = this.#book.runner;
    const lease = await this.#open(
      AbortSignal.any([this.#startLimit.signal, runnerSignal, this.#deps.stopSignal]),
    );
    if (!lease) return;
    const { session } = lease;
    const asked = this.#state.name === 'opening';
    if (asked) {
      this.#state = { name: 'asked', session };
      void this.#ask(session);
      await this.exit;
    }
    if (this.#taskGone || runnerSignal.aborted) {
      await lease.release('gone', this);
      return;
    }
    const isCut = asked && !this.#isRefused && !this.#endedByItself();
    if (isCut) await this.#book.end(this);
    await lease.release(isCut ? 'cut' : 'ended', this);
  }

  /** Also opens for a client that left meanwhile: an exec that was begun is ended in order, not left half open. */
  async #open(signal: AbortSignal): Promise<SessionLease | undefined> {
    if (this.#state.name === 'ended') return undefined;
    try {
      const lease = await this.#deps.lease(signal);
      this.#session = lease.session;
      if (this.#size) this.#session.resize(this.#size.columns, this.#size.rows);
      return lease;
    } catch (error) {
      if (this.#state.name === 'opening') this.#deps.log.warn('an execution could not be opened', { error });
      this.#finish({ kind: 'failed', message: openFailureSentence(error) });
      return undefined;
    }
  }

  async #ask(session: CommandSession): Promise<void> {
    try {
      const end = await session.run(this.#deps.command, {
        started: () => this.#begin(session),
        output: (stream, bytes) => this.#deliver(session, stream, bytes),
        user: (user) => {
          this.#book.user = user;
          this.#deps.reportFitness(undefined);
        },
      });
      this.#finish(await this.#judge(end));
    } catch (error) {
      // None of these rejects; should one, the client still gets an end and the processes are ended.
      this.#deps.log.error('an execution failed', { executionId: this.id, error });
      this.#finish({ kind: 'failed', message: CONNECTION_LOST });
    }
  }

  #begin(session: CommandSession): void {
    if (this.#state.name !== 'asked') return;
    this.#state = { name: 'running', session, sinceMs: this.#deps.clock.monotonicMs() };
    this.#startLimit.clear();
    this.#silence.stop();
    this.#sink.started();
    if (this.#limitMs > 0) {
      this.#timeLimit = this.#deps.clock.setTimer(this.#limitMs, () => this.#finish({ kind: 'time-limit' }));
    }
    this.#openGate();
  }

  #deliver(session: CommandSession, stream: 'stdout' | 'stderr', bytes: Buffer): void {
    if (this.#state.name !== 'running') return;
    if (!this.#output.push(session, stream, bytes)) this.#finish({ kind: 'output-limit' });
  }

  /** What the end of a command means, with Nomad asked where a dead runner would look the same. */
  async #judge(end: CommandEnd): Promise<Exit> {
    if (end.kind === 'refused') {
      this.#isRefused = true;
      const message = refusalSentence(end.refusal);
      // A client may have changed the runner, which says nothing of the image.
      if (concernsEnvironment(end.refusal) && this.#book.untouched) this.#deps.reportFitness(message);
      return { kind: 'failed', message };
    }
    if (end.kind === 'exited' && end.exitCode !== 137 && end.exitCode !== 128) {
      return { kind: 'exited', exitCode: end.exitCode };
    }
    switch (await this.#book.runner.whatHappened(NEWS_MS)) {
      case 'restarted':
      case 'gone':
        this.#taskGone = true;
        return { kind: 'failed', message: RUNNER_LOST };
      case 'out-of-memory':
        this.#taskGone = true;
        return { kind: 'out-of-memory' };
      case 'alive':
    }
    if (end.kind === 'exited') return { kind: 'exited', exitCode: end.exitCode };
    this.#deps.log.warn('an exec ended without an exit', {
      executionId: this.id,
      exec: end.exec,
      end: end.end,
    });
    return { kind: 'failed', message: this.#state.name === 'asked' ? NOT_STARTED : CONNECTION_LOST };
  }

  #endedByItself(): boolean {
    return this.#state.name === 'ended' && this.#state.exit.kind === 'exited';
  }

  #finish(exit: Exit): void {
    if (this.#state.name === 'ended') return;
    const { log, clock } = this.#deps;
    if (this.#state.name === 'running') {
      if (exit.kind !== 'hang-up' && exit.kind !== 'output-limit') {
        this.#flush(this.#state.session);
        if (this.state === 'ended') return; // what had been kept back was over the limit
      }
      if (exit.kind === 'exited') this.#book.endedByItself(this.id);
    }
    this.#state = { name: 'ended', exit };
    this.#startLimit.clear();
    this.#silence.stop();
    this.#timeLimit?.cancel();
    this.#openGate();
    const durationMs = Math.round(clock.monotonicMs() - this.#startedAtMs);
    log.info('execution ended', { executionId: this.id, exit, durationMs });
    this.#resolveExit(exit);
  }

  /** The last bytes: what might have been the beginning of an end, and characters that stay incomplete. */
  #flush(session: CommandSession): void {
    session.flush();
    this.#output.end();
  }
}
