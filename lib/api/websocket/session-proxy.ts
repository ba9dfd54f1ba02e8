/**
 * The socket of a session: commands of one client on one runner, one after the other.
 *
 *                    ┌─────────────── its end, and nothing of it left that must not be ◀──────────┐
 *   exec ──▶ queue ──┴─▶ turn: prepared, taken ──▶ runs (execution-link.ts) ──▶ end ──────────────┘
 *              └── cancelled, runner gone, service stops: end ──▶
 *
 * A command becomes an execution at its turn and not before, so those that wait hold no place that others need. After one
 * that was cut the next waits until the processes of that are ended, and at all times until the client has read enough: its
 * input is kept for it meanwhile. The socket ends with its client, with its runner, or with the service.
 *
 * Not here: what a frame means (session-message.ts), what is said of commands that do not run (session-answers.ts), who may
 * have the socket (upgrade.ts).
 */
import { ServiceError } from '../../base/errors.js';
import type { ExecutionsApi } from '../../execution/api.js';
import type { ExecMessage } from '../../protocol/websocket.js';
import { CANCELLED_TEXT } from '../../protocol/websocket.js';
import type { ClaimedRunner } from '../../runners/runner.js';
import { toExecutionRequest } from '../execution-request.js';
import type { ClientConnectionOptions } from './client-connection.js';
import { ClientConnection, GOING_AWAY, NORMAL_CLOSURE, SERVICE_RESTART } from './client-connection.js';
import type { CommandRoom } from './command-queue.js';
import { CommandQueue } from './command-queue.js';
import { seraiV1Speech } from './dialect.js';
import { ExecutionLink } from './execution-link.js';
import type { SocketProxy } from './proxy.js';
import { SessionAnswers } from './session-answers.js';
import type { SessionRequest } from './session-message.js';
import { readSessionFrame } from './session-message.js';

/** How long a client may take to answer that the service goes away. */
const GOING_AWAY_MS = 1000;
const RUNNER_GONE = 'the runner is gone, so the command was not run';
const RUNNER_TAKEN_OVER = 'another replica has the runner now; open the session again';
const STOPPING = 'the service is stopping';
const NO_COMMAND = 'no command of this id runs';

export interface SessionProxyOptions extends ClientConnectionOptions {
  readonly runner: ClaimedRunner;
  readonly executions: ExecutionsApi;
  /** Where the commands of all sessions wait. */
  readonly room: CommandRoom;
  /** Counts a command against the limits of the client's token. RATE_LIMITED. */
  readonly admitCommand: () => void;
}

/** The command whose turn it is, whether it was begun or not. */
interface Turn {
  readonly message: ExecMessage;
  readonly link: ExecutionLink;
}

/** Why no command is begun any more, and how the socket closes. */
interface Closing {
  readonly code: typeof NORMAL_CLOSURE | typeof GOING_AWAY | typeof SERVICE_RESTART;
  readonly why: string;
}

export class SessionProxy implements SocketProxy {
  readonly #options: SessionProxyOptions;
  readonly #connection: ClientConnection;
  readonly #answers: SessionAnswers;
  readonly #queue: CommandQueue;
  #current: Turn | undefined;
  /** Resolves when the last command that was cut has left nothing behind. */
  #rest: Promise<void> | undefined;
  /** True while a begin waits for that, or for the client to read; it is of whichever command has its turn then. */
  #isWaiting = false;
  #runs: Promise<void> = Promise.resolve();
  #closing: Closing | undefined;

  constructor(options: SessionProxyOptions) {
    this.#options = options;
    this.#connection = new ClientConnection(options);
    this.#answers = new SessionAnswers(this.#connection);
    this.#queue = new CommandQueue(options.room);
  }

  async run(): Promise<void> {
    const { runnerSignal } = this.#options.runner;
    const onGone = (): void =>
      this.#close(
        isTakenOver(runnerSignal)
          ? { code: SERVICE_RESTART, why: RUNNER_TAKEN_OVER }
          : { code: NORMAL_CLOSURE, why: RUNNER_GONE },
      );
    const closed = this.#connection.serve({
      frame: (frame, isBinary, cost) => this.#take(readSessionFrame(frame, isBinary), cost),
      closed: () => {
        runnerSignal.removeEventListener('abort', onGone);
        this.#queue.clear();
        this.#closing ??= { code: NORMAL_CLOSURE, why: RUNNER_GONE };
        this.#current?.link.hangUp();
      },
    });
    if (runnerSignal.aborted) onGone();
    else runnerSignal.addEventListener('abort', onGone, { once: true });
    await closed;
    await this.#runs;
  }

  drain(): void {
    this.#close({ code: GOING_AWAY, why: STOPPING });
  }

  interrupt(message: string): void {
    this.#close({ code: GOING_AWAY, why: message });
    this.#current?.link.cut(message);
  }

  destroy(): void {
    this.#connection.destroy();
  }

  #take(request: SessionRequest, cost: number): void {
    switch (request.type) {
      case 'exec':
        this.#exec(request, cost);
        return;
      case 'cancel':
        this.#cancel(request.id, cost);
        return;
      case 'input':
        if (this.#current && (request.id ?? this.#current.message.id) === this.#current.message.id) {
          this.#current.link.take(request.request, cost);
        } else
          this.#answers.refuse(request.id, request.id === undefined ? 'no command runs' : NO_COMMAND, cost);
        return;
      case 'unreadable':
        if (request.id !== undefined && request.isExec && !this.#isInUse(request.id)) {
          this.#answers.fail(request.id, request.why, cost);
        } else this.#answers.refuse(request.id, request.why, cost);
    }
  }

  #exec(message: ExecMessage, cost: number): void {
    const { id } = message;
    if (this.#isInUse(id)) {
      this.#answers.refuse(id, 'a command of this id runs or waits; choose another one for the next', cost);
      return;
    }
    const why = this.#closing?.why ?? this.#reasonAgainst() ?? this.#queue.add(message, cost);
    if (why === undefined) this.#advance();
    else this.#answers.fail(id, why, cost);
  }

  #reasonAgainst(): string | undefined {
    try {
      this.#options.admitCommand();
      return undefined;
    } catch (error) {
      return this.#sentence(error);
    }
  }

  #cancel(id: string, cost: number): void {
    if (this.#current?.message.id === id) this.#current.link.cut(CANCELLED_TEXT);
    else if (this.#queue.remove(id)) this.#answers.fail(id, CANCELLED_TEXT, cost);
    else this.#answers.refuse(id, 'no command of this id runs or waits', cost);
  }

  #isInUse(id: string): boolean {
    return this.#current?.message.id === id || this.#queue.has(id);
  }

  /** Gives the next command its turn. */
  #advance(): void {
    if (this.#current) return;
    const message = this.#queue.shift();
    if (!message) {
      if (this.#closing) this.#finish(this.#closing);
      return;
    }
    const { clock, log } = this.#options;
    const connection = this.#connection;
    const link = new ExecutionLink({
      connection,
      speech: seraiV1Speech,
      id: message.id,
      clock,
      log,
      onEnd: (rest) => {
        this.#rest = rest ?? this.#rest;
        this.#current = undefined;
        this.#advance();
      },
    });
    const turn = { message, link };
    this.#current = turn;
    if (!this.#isWaiting && !this.#rest && !connection.outbox.isFull) this.#begin(turn);
    else void this.#beginLater();
  }

  async #beginLater(): Promise<void> {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    await this.#rest;
    await this.#connection.outbox.drained();
    this.#isWaiting = false;
    this.#rest = undefined;
    if (this.#current) this.#begin(this.#current);
  }

  #begin({ message, link }: Turn): void {
    const { runner, executions } = this.#options;
    try {
      const execution = executions.take(runner, executions.prepare(runner, toExecutionRequest(message)));
      this.#runs = link.begin(execution);
    } catch (error) {
      link.cut(this.#sentence(error));
    }
  }

  /** Begins nothing any more, and closes when what runs has ended. */
  #close(closing: Closing): void {
    if (this.#closing) return;
    this.#closing = closing;
    for (let next = this.#queue.shift(); next; next = this.#queue.shift())
      this.#answers.fail(next.id, closing.why);
    if (!this.#current) this.#finish(closing);
    else if (!this.#current.link.hasBegun) this.#current.link.cut(closing.why);
  }

  #finish({ code }: Closing): void {
    this.#connection.finish(code, code === GOING_AWAY ? GOING_AWAY_MS : undefined);
  }

  #sentence(error: unknown): string {
    if (error instanceof ServiceError) return error.message;
    this.#options.log.error('a command of a session failed unexpectedly', { error });
    return 'the execution failed unexpectedly';
  }
}

/** Another replica has the runner: it is there, and the client may come back to it. */
function isTakenOver({ reason }: AbortSignal): boolean {
  return reason instanceof ServiceError && reason.details.reason === 'taken-over';
}
