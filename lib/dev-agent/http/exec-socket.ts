import type { WebSocket } from 'ws';
import type { Clock } from '../../base/clock.js';
import type { Slots } from '../../base/slots.js';
import type { Cluster } from '../cluster.js';
import type { DriverExec } from '../driver.js';
import { messageOf } from '../../base/errors.js';
import type { ClientFrame } from './exec-frames.js';
import * as frames from './exec-frames.js';

/**
 * One exec: a WebSocket on one side, a process in a task on the other.
 *
 *   opening ── process started ──▶ running ── ended, all sent ──▶ closed 1000
 *      └── refused: 1008 or 1011 ───────┴── task stopped: 1011, dropped: 1006 ──▶ closed
 *
 * The socket is open before anything is known about the command, as with Nomad. Back-pressure goes both ways: the
 * program waits while the socket's buffer is high, the socket while the program's input is.
 */
export interface ExecRequest {
  readonly allocationId: string;
  readonly task: string;
  readonly command: readonly string[];
  readonly tty: boolean;
  /** The first frame carries a token. */
  readonly handshake: boolean;
}

export interface ExecSocketDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly delayMs: number;
  /** Execs that are being opened at once. */
  readonly opening: Slots;
}

const POLICY_VIOLATION = 1008;
const INTERNAL_ERROR = 1011;
const HIGH_WATER_BYTES = 1024 * 1024;
const MAX_REASON_BYTES = 123;

/** Why an exec cannot be, as a close code and a reason. */
class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.code = code;
  }
}

export class ExecSocket {
  readonly #socket: WebSocket;
  readonly #request: ExecRequest;
  readonly #deps: ExecSocketDeps;
  readonly #closed = new AbortController();
  /** Input that came before there was a process. */
  readonly #early: ClientFrame[] = [];
  #exec: DriverExec | undefined;
  #inputBroken = false;
  #awaitsHandshake: boolean;
  #sending = 0;

  constructor(socket: WebSocket, request: ExecRequest, deps: ExecSocketDeps) {
    this.#socket = socket;
    this.#request = request;
    this.#deps = deps;
    this.#awaitsHandshake = request.handshake;
    socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#receive(frames.textOf(data));
    });
    socket.on('error', () => undefined); // a close follows, which is what counts
    socket.on('close', () => this.#closed.abort());
    if (!request.handshake) void this.#run();
  }

  get allocationId(): string {
    return this.#request.allocationId;
  }

  /** Breaks the connection off; the process may live on. */
  drop(): void {
    this.#socket.terminate();
  }

  async #run(): Promise<void> {
    let forget: (() => void) | undefined;
    try {
      const { exec, onOpened } = await this.#open();
      forget = onOpened;
      if (this.#closed.signal.aborted) {
        exec.abandon();
        return;
      }
      await this.#serve(exec);
    } catch (error) {
      this.#close(error instanceof Refusal ? error.code : INTERNAL_ERROR, messageOf(error));
    } finally {
      forget?.();
    }
  }

  async #open(): Promise<{ exec: DriverExec; onOpened: () => void }> {
    const { allocationId, task: taskName, command } = this.#request;
    const { cluster, opening } = this.#deps;
    if (allocationId.length !== 36) {
      throw new Refusal(INTERNAL_ERROR, 'alloc lookup failed: index error: UUID must be 36 characters');
    }
    const allocation = cluster.store.allocation(allocationId);
    if (!allocation) throw new Refusal(POLICY_VIOLATION, `Unknown allocation "${allocationId}"`);
    if (command.length === 0) throw new Refusal(POLICY_VIOLATION, 'command is not present');
    const group = allocation.Job.TaskGroups.find(({ Name }) => Name === allocation.TaskGroup);
    if (!group?.Tasks.some(({ Name }) => Name === taskName)) {
      throw new Refusal(INTERNAL_ERROR, 'task not found');
    }
    const notRunning = new Refusal(POLICY_VIOLATION, `task "${taskName}" is not running.`);
    if (!cluster.client.runner(allocationId)?.task(taskName)?.handle) throw notRunning;
    return await opening.with(() => this.#start(notRunning), this.#closed.signal);
  }

  async #start(notRunning: Refusal): Promise<{ exec: DriverExec; onOpened: () => void }> {
    const { allocationId, task: taskName, command, tty } = this.#request;
    const { cluster, clock, delayMs } = this.#deps;
    if (delayMs > 0) await clock.sleep(delayMs, this.#closed.signal);
    const task = cluster.client.runner(allocationId)?.task(taskName);
    if (!task?.handle) throw notRunning;
    const forget = task.addExec({ shutDown: () => this.#close(INTERNAL_ERROR, 'plugin is shut down') });
    try {
      return { exec: await task.handle.exec({ command, tty }), onOpened: forget };
    } catch (error) {
      forget();
      const prefix = 'rpc error: code = Unknown desc = failed to start command: ';
      throw new Refusal(INTERNAL_ERROR, prefix + messageOf(error));
    }
  }

  async #serve(exec: DriverExec): Promise<void> {
    this.#exec = exec;
    this.#closed.signal.addEventListener('abort', () => exec.abandon());
    exec.onOutput((stream, chunk) => this.#sendOutput(exec, stream, chunk));
    for (const frame of this.#early.splice(0)) this.#apply(exec, frame);
    const exitCode = await exec.exitCode;
    if (this.#closed.signal.aborted) return;
    for (const stream of this.#request.tty ? (['stdout'] as const) : (['stderr', 'stdout'] as const)) {
      this.#socket.send(frames.closeFrame(stream));
    }
    this.#socket.send(frames.exitFrame(exitCode));
    this.#close(1000, '');
  }

  #sendOutput(exec: DriverExec, stream: 'stdout' | 'stderr', chunk: Buffer): void {
    for (const frame of frames.outputFrames(stream, chunk)) {
      this.#sending += frame.length;
      this.#socket.send(frame, () => {
        this.#sending -= frame.length;
        if (this.#sending < HIGH_WATER_BYTES / 2) exec.resume();
      });
    }
    if (this.#sending > HIGH_WATER_BYTES) exec.pause();
  }

  #receive(text: string): void {
    if (this.#awaitsHandshake) {
      this.#awaitsHandshake = false;
      const problem = frames.handshakeProblem(text);
      if (problem === undefined) void this.#run();
      else this.#close(POLICY_VIOLATION, problem);
      return;
    }
    // Nomad stops reading at the first frame that it cannot read, and says nothing.
    if (this.#inputBroken) return;
    const frame = frames.parseClientFrame(text);
    if (!frame) this.#inputBroken = true;
    else if (this.#exec) this.#apply(this.#exec, frame);
    else this.#early.push(frame);
  }

  #apply(exec: DriverExec, { input, closesInput, size }: ClientFrame): void {
    if (size) exec.resize(size.columns, size.rows);
    if (input && input.length > 0) {
      const ready = exec.write(input);
      if (ready) {
        this.#socket.pause();
        void ready.then(() => this.#socket.resume());
      }
    }
    if (closesInput) exec.closeStdin();
  }

  #close(code: number, reason: string): void {
    if (this.#closed.signal.aborted) return;
    // A close frame has room for this much; Nomad's texts are short, those of a driver may not be.
    let text = reason;
    while (Buffer.byteLength(text) > MAX_REASON_BYTES) text = text.slice(0, -1);
    this.#socket.close(code, text);
  }
}
