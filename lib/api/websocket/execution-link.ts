/**
 * Binds one execution to the connection of its client, whether it has that to itself or shares it.
 *
 *   waiting ── begin ──▶ running ── exit, or cut ──▶ ended
 *      └──────────── cut, or its client left ───────────▲
 *
 * What the client sends before the beginning is kept for it. What it sends and the program does not take is held against
 * the connection until the program does, or ends. A message that is none is refused and ends nothing; the refusals are
 * held until the client has read them.
 *
 * Not here: what a frame asks for (dialect.ts, session-message.ts), when a socket is closed (proxy.ts, session-proxy.ts).
 */
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/log.js';
import type { ProgramSignal } from '../../base/program-signals.js';
import type { ExecutionSink, Exit, PreparedExecution, RunningExecution } from '../../execution/api.js';
import type { ClientConnection } from './client-connection.js';
import type { ClientRequest, Speech } from './dialect.js';
import { MessageQueue } from './message-queue.js';

const NOTHING = Buffer.alloc(0);

export interface ExecutionLinkOptions {
  readonly connection: ClientConnection;
  readonly speech: Speech;
  /** Goes with every message of the execution; undefined where it has the connection to itself. */
  readonly id?: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Called once, when the end is on its way to the client, or was dropped because that left. `rest` is given where the
   * execution was cut: it resolves when nothing of it is left in the runner.
   */
  readonly onEnd: (rest: Promise<void> | undefined) => void;
}

export class ExecutionLink implements ExecutionSink {
  readonly #options: ExecutionLinkOptions;
  readonly #queue: MessageQueue;
  /** What came before the beginning. */
  readonly #early: { readonly request: ClientRequest; readonly cost: number }[] = [];
  #execution: PreparedExecution | undefined;
  #running: RunningExecution | undefined;
  #hasEnded = false;
  #startedAtMs: number | undefined;
  #heldBytes = 0;

  constructor(options: ExecutionLinkOptions) {
    this.#options = options;
    this.#queue = new MessageQueue(options.connection.outbox, options.id);
  }

  /** True once the execution was begun, also after its end. */
  get hasBegun(): boolean {
    return this.#running !== undefined;
  }

  /** Runs the execution, once. Resolves when it has ended in the runner, too. Never rejects. */
  async begin(execution: PreparedExecution): Promise<void> {
    const { log, speech } = this.#options;
    this.#execution = execution;
    this.#queue.beginWith(speech.start(execution.id));
    const running = execution.run(this);
    this.#running = running;
    for (const { request, cost } of this.#early.splice(0)) this.#carryOut(running, request, cost);
    try {
      this.#end(await running.exit);
    } catch (error) {
      log.error('an execution rejected instead of ending', { executionId: execution.id, error });
      this.#end({ kind: 'failed', message: 'the execution failed unexpectedly' });
    }
  }

  /** Does what the client asks of the program. */
  take(request: ClientRequest, cost: number): void {
    if (this.#hasEnded) return;
    this.#heldBytes += cost;
    this.#options.connection.hold(cost);
    if (this.#running) this.#carryOut(this.#running, request, cost);
    else this.#early.push({ request, cost });
  }

  /** Cuts the execution, whether it runs or not: its client gets `message` as its end. */
  cut(message: string): void {
    if (this.#hasEnded) return;
    const rest = this.#running?.cleared;
    this.#end({ kind: 'failed', message }, rest);
    this.#running?.hangUp();
  }

  /** The client left: says nothing any more, and ends the program. */
  hangUp(): void {
    this.#queue.discard();
    if (this.#hasEnded) return;
    this.#settle(this.#running?.cleared);
    this.#running?.hangUp();
  }

  started(): void {
    this.#startedAtMs ??= this.#options.clock.monotonicMs();
    this.#queue.start();
  }

  output(stream: 'stdout' | 'stderr', text: string): boolean {
    return this.#queue.output(stream, text);
  }

  drained(): Promise<void> {
    return this.#queue.drained();
  }

  #end(exit: Exit, rest = exit.kind === 'exited' ? undefined : this.#running?.cleared): void {
    if (this.#hasEnded) return;
    const nowMs = this.#options.clock.monotonicMs();
    const durationMs = Math.round(nowMs - (this.#startedAtMs ?? nowMs));
    this.#queue.end(this.#options.speech.end(exit, durationMs));
    this.#settle(rest);
  }

  #settle(rest: Promise<void> | undefined): void {
    this.#hasEnded = true;
    this.#options.connection.release(this.#heldBytes);
    this.#heldBytes = 0;
    this.#options.onEnd(rest);
  }

  #carryOut(running: RunningExecution, request: ClientRequest, cost: number): void {
    const taken = (): void => {
      if (this.#hasEnded) return; // nothing is held for it any more
      this.#heldBytes -= cost;
      this.#options.connection.release(cost);
    };
    // A program that takes no input any more is told of by its exit.
    this.#pass(running, request).then(taken, taken);
  }

  /** Resolves once there is room for more. */
  #pass(running: RunningExecution, request: ClientRequest): Promise<void> {
    switch (request.type) {
      case 'stdin':
        return running.write(request.bytes);
      case 'resize':
        running.resize(request.cols, request.rows);
        return running.write(NOTHING);
      case 'eof':
        running.closeStdin();
        return running.write(NOTHING);
      case 'signal':
        return this.#signal(running, request.data);
      case 'unreadable':
        return this.#refuse(running, request.why);
    }
  }

  async #signal(running: RunningExecution, name: ProgramSignal): Promise<void> {
    try {
      await running.signal(name);
    } catch (error) {
      if (this.#hasEnded) return; // there is nobody left to be told
      const executionId = this.#execution?.id;
      this.#options.log.warn('a signal may not have reached a program', { executionId, signal: name, error });
      await this.#refuse(running, `${name} may not have reached the program; send it again`);
    }
  }

  /** Answers in the order of what the client sent, and not before the start. */
  async #refuse(running: RunningExecution, why: string): Promise<void> {
    await running.write(NOTHING);
    this.#queue.tell({ type: 'refused', data: why });
    await this.#queue.drained();
  }
}
