import { deadline, reasonOf } from '../../base/abort.js';
import type { Timer } from '../../base/clock.js';
import type { Clock } from '../../base/clock.js';
import { hasCode, ServiceError } from '../../base/errors.js';
import type { ExecutionId, Randomness } from '../../base/ids.js';
import { newExecutionId } from '../../base/ids.js';
import type { Logger } from '../../base/log.js';
import type { Config } from '../../config/config.js';
import type { ClaimedRunner } from '../../runners/runner.js';
import type { RunnerProcess } from '../../shell/frames.js';
import type { CommandRequest } from '../../shell/request.js';
import { newToken, userChoice } from '../command.js';
import type { RunnerBook } from '../runner-book.js';
import type { RunnerBooks } from '../runner-books.js';
import type { Pulse } from '../pulse.js';
import { CONNECTION_LOST, NOMAD_SILENT, openFailureSentence, refusalSentence } from '../sentences.js';
import type { CommandEnd, CommandSession, SessionDeps } from '../session.js';
import type { SessionLease, SessionSource } from '../session-source.js';
import { SilenceWatch } from '../silence.js';
import { ByteQueue } from './byte-queue.js';

export interface ToolDeps extends SessionDeps {
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly config: Pick<Config, 'execution' | 'runner'>;
  readonly books: RunnerBooks;
  readonly sessions: SessionSource;
  readonly pulse: Pulse;
}

export interface ToolRequest {
  readonly runner: ClaimedRunner;
  /** A call of the file loop's functions (shell/file-loop.ts). */
  readonly call: string;
  /** How much will be written. */
  readonly inputBytes: number;
  readonly privileged: boolean;
  /** Ends the tool when the client left. */
  readonly requestSignal: AbortSignal;
}

/** From the request to an open session. */
const START_MS = 15_000;
/** A call that neither takes nor gives a byte for this long hangs; its runner is not trusted any more. */
const IDLE_MS = 60_000;
const QUEUE_BYTES = 1024 * 1024;
const NEWS_MS = 500;

/**
 * A call of ours in a runner, without a terminal: the file operations.
 *
 *   open ──▶ running ── exit code ──▶ ended
 *               └── client or runner gone, silence, exec lost ──▶ failed: its processes are ended
 *
 * `output` is what the call prints, read with back-pressure; it throws what the tool failed with, so a cut
 * answer is never taken for a whole one. Disposing ends whatever is left.
 */
export class Tool implements AsyncDisposable {
  readonly output: ByteQueue;
  /** The call's exit code. Rejects with what the tool failed with: RUNNER_GONE, EXECUTION_FAILED, the client's reason. */
  readonly exitCode: Promise<number>;
  readonly #deps: ToolDeps;
  readonly #request: ToolRequest;
  readonly #book: RunnerBook;
  readonly #lease: SessionLease;
  readonly #session: CommandSession;
  readonly #id: ExecutionId;
  readonly #endActivity: () => void;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.#fail(reasonOf(this.#signal));
  #settle: { resolve: (code: number) => void; reject: (error: Error) => void } | undefined;
  /** Opens when input can be passed on, or need not be any more. */
  readonly #ready: Promise<void>;
  #openGate: () => void = () => undefined;
  #idle: Timer | undefined;
  /** While the client waits for its answer. */
  readonly #silence: SilenceWatch;
  #ended: 'exited' | 'failed' | undefined;
  #disposing: Promise<void> | undefined;

  private constructor(deps: ToolDeps, request: ToolRequest, parts: ToolParts) {
    this.#deps = deps;
    this.#request = request;
    this.#book = parts.book;
    this.#lease = parts.lease;
    this.#session = parts.lease.session;
    this.#id = parts.id;
    this.#endActivity = parts.endActivity;
    this.#signal = AbortSignal.any([request.runner.runnerSignal, request.requestSignal]);
    this.exitCode = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#ready = new Promise((resolve) => {
      this.#openGate = resolve;
    });
    this.#silence = new SilenceWatch({
      pulse: deps.pulse,
      clock: deps.clock,
      onSilent: () => this.#fail(nomadSilent()),
    });
    // Whoever reads only the output learns of a failure there.
    this.exitCode.catch(() => undefined);
    this.output = new ByteQueue({
      pauseAboveBytes: QUEUE_BYTES,
      pause: () => this.#session.pause(),
      resume: () => this.#session.resume(),
    });
  }

  /** Gets a session and starts the call. Rejects with RUNNER_GONE, EXECUTION_FAILED or Nomad's failure. */
  static async open(deps: ToolDeps, request: ToolRequest): Promise<Tool> {
    const { runner, requestSignal } = request;
    const book = deps.books.of(runner);
    const id = newExecutionId(deps.randomness);
    const endActivity = runner.beginActivity();
    const booked = { id, root: undefined };
    await book.enter(booked);
    using limit = deadline(deps.clock, START_MS, 'EXECUTION_FAILED', 'the runner did not answer in time');
    const signal = AbortSignal.any([runner.runnerSignal, requestSignal, limit.signal]);
    try {
      const lease = await deps.sessions.lease(book, 'files', signal);
      const tool = new Tool(deps, request, { book, lease, id, endActivity });
      await book.enter(tool);
      tool.#start();
      return tool;
    } catch (error) {
      endActivity();
      if (signal.aborted) throw reasonOf(signal);
      if (hasCode(error, 'NOMAD_UNREACHABLE', 'NOMAD_OVERLOADED')) throw error;
      throw new ServiceError('EXECUTION_FAILED', openFailureSentence(error), { cause: error });
    } finally {
      await book.leave(booked);
    }
  }

  get id(): ExecutionId {
    return this.#id;
  }

  get root(): RunnerProcess | undefined {
    return this.#session.root;
  }

  /**
   * Input for the call, passed on once it has begun. Resolves when there is room for more, with false where none is taken
   * any more.
   */
  async write(chunk: Uint8Array): Promise<boolean> {
    await this.#ready;
    if (this.#ended) return false;
    await this.#session.write(chunk);
    this.#progress();
    return true;
  }

  /** The client has the beginning of its answer: the rest may take its time. */
  answered(): void {
    this.#silence.stop();
  }

  /** Cuts the call off, and what is read of it throws the error. */
  giveUp(error: ServiceError): void {
    this.#fail(error);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  #start(): void {
    const { randomness, config } = this.#deps;
    const { runner, call, inputBytes, privileged } = this.#request;
    this.#signal.addEventListener('abort', this.#onAbort, { once: true });
    if (this.#signal.aborted) this.#onAbort();
    this.#progress();
    const request: CommandRequest = {
      token: newToken(randomness),
      id: this.#id,
      command: call,
      environment: {},
      workingDirectory: undefined,
      user: userChoice({ privileged, config, environment: runner.environment, user: this.#book.user }),
      splitStderr: false,
      inputBytes,
    };
    const run = this.#session.run(request, {
      started: () => {
        this.#progress();
        this.#openGate();
      },
      output: (_stream, bytes) => {
        this.#progress();
        this.output.push(bytes);
      },
      user: (user) => {
        this.#book.user = user;
      },
    });
    void run.then((end) => this.#finish(end));
  }

  async #finish(end: CommandEnd): Promise<void> {
    if (this.#ended) return;
    if (end.kind === 'refused') {
      this.#fail(new ServiceError('EXECUTION_FAILED', refusalSentence(end.refusal)));
      return;
    }
    if (end.kind === 'lost' || end.exitCode >= 128) {
      const news = await this.#request.runner.whatHappened(NEWS_MS);
      if (end.kind === 'lost' || news !== 'alive') {
        const { id } = this.#request.runner;
        this.#fail(
          news === 'alive'
            ? new ServiceError('EXECUTION_FAILED', CONNECTION_LOST, { details: { runnerId: id, end } })
            : new ServiceError('RUNNER_GONE', `runner ${id} was lost meanwhile; claim another one`),
        );
        return;
      }
    }
    if (this.#ended) return;
    this.#ended = 'exited';
    this.#rest();
    this.output.end();
    this.#settle?.resolve(end.exitCode);
  }

  #fail(error: ServiceError): void {
    if (this.#ended) return;
    this.#ended = 'failed';
    this.#rest();
    this.output.end(error);
    this.#settle?.reject(error);
  }

  /** Notes that something moved. A reader that is slow is no reason to give up. */
  #progress(): void {
    this.#idle?.cancel();
    this.#silence.heard();
    if (this.#ended) return;
    this.#idle = this.#deps.clock.setTimer(IDLE_MS, () => {
      if (this.output.paused) {
        this.#progress();
        return;
      }
      const { runner } = this.#request;
      this.#fail(
        new ServiceError('EXECUTION_FAILED', `runner ${runner.id} stopped answering and was given up`),
      );
      runner.abandon('not-killable');
    });
  }

  #rest(): void {
    this.#idle?.cancel();
    this.#silence.stop();
    this.#openGate();
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  async #dispose(): Promise<void> {
    const { runnerSignal } = this.#request.runner;
    if (!this.#ended) this.#fail(new ServiceError('STOPPED', 'the operation was given up'));
    const isCut = this.#ended === 'failed';
    if (isCut && !runnerSignal.aborted) await this.#book.end(this);
    await this.#lease.release(runnerSignal.aborted ? 'gone' : isCut ? 'cut' : 'ended', this);
    await this.#book.leave(this);
    this.#endActivity();
  }
}

/** What a client is told that waits for a silent Nomad. */
export function nomadSilent(): ServiceError {
  return new ServiceError('NOMAD_UNREACHABLE', NOMAD_SILENT);
}

interface ToolParts {
  readonly book: RunnerBook;
  readonly lease: SessionLease;
  readonly id: ExecutionId;
  readonly endActivity: () => void;
}
