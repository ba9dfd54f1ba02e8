import type { ExecSession } from '../nomad/api.js';
import type { ExecEnd } from '../nomad/model.js';
import { feedFileLoop, formatOver } from '../shell/file-loop.js';
import type { ControlLine, RunnerProcess } from '../shell/frames.js';
import { parseControlLine } from '../shell/frames.js';
import type { CommandRequest } from '../shell/request.js';
import { formatAgain, formatRequest } from '../shell/request.js';
import { scriptReader } from '../shell/script.js';
import { CommandOutcome } from './command-outcome.js';
import { endExec } from './end-exec.js';
import { FramedStream } from './framed-stream.js';
import { LineReader } from './line-reader.js';
import type {
  Aftermath,
  CommandEnd,
  CommandEvents,
  CommandSession,
  SessionDeps,
  SessionOptions,
} from './session.js';
import { SETTLE_MS } from './session.js';
import { settlesWithin } from './within.js';

/**
 * Opens a session for file operations (shell/file-loop.ts): for one, or for one after the other. A request's `command`
 * is a call of the loop's own functions, and its `inputBytes` say how much is going to be written; what it prints on
 * standard error is dropped. Rejects as `openExec` does.
 */
export async function openFileSession(
  deps: SessionDeps,
  { runner, folder, sweeping, signal }: SessionOptions,
): Promise<CommandSession> {
  const { allocationId, task } = runner;
  const command = scriptReader(folder);
  const exec = await deps.nomad.openExec({ allocationId, task, command, tty: false, signal });
  return new FileSession(deps, exec, feedFileLoop(folder, sweeping));
}

/** What runs, or ran last. */
interface Current {
  readonly request: CommandRequest;
  readonly inputBytes: number;
  readonly events: CommandEvents;
  readonly outcome: CommandOutcome;
  readonly stdout: FramedStream;
  sentBytes: number;
  /** The loop was asked once how things stand. */
  isAsked: boolean;
  end: CommandEnd | undefined;
  /** What the loop said of itself when all was over. */
  idle: 'clean' | 'suspect' | undefined;
}

/**
 *   opening ── ready ──▶ idle ── run ──▶ busy ── the command's end ──▶ settling ── idle line ──▶ idle
 *                                                                          └── silence, or input left over ──▶ spent
 *
 * An exec that ends is the end of it in every state.
 */
class FileSession implements CommandSession {
  readonly ended: Promise<void>;
  readonly #deps: SessionDeps;
  readonly #exec: ExecSession;
  readonly #lines = new LineReader((line) => this.#controlLine(parseControlLine(line)));
  #root: RunnerProcess | undefined;
  #current: Current | undefined;
  /** How every further command ends: the exec did, or the runner lacks what the loop needs. */
  #early: CommandEnd | undefined;
  /** Called when the loop said something, or cannot any more. */
  #wake: () => void = () => undefined;
  #settling: Promise<Aftermath> | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: SessionDeps, exec: ExecSession, script: Buffer) {
    this.#deps = deps;
    this.#exec = exec;
    exec.onOutput((name, chunk) => {
      if (name === 'stdout') this.#output(chunk);
    });
    this.ended = exec.end.then((end) => this.#execEnded(end));
    void exec.write(script);
  }

  get root(): RunnerProcess | undefined {
    return this.#root;
  }

  run(request: CommandRequest, events: CommandEvents): Promise<CommandEnd> {
    const inputBytes = request.inputBytes ?? 0;
    const pass = (bytes: Buffer): void => this.#lines.push(bytes);
    const stdout = new FramedStream(request.token, {
      preamble: pass,
      started: () => events.started(),
      output: (bytes) => {
        if (!outcome.settled) events.output('stdout', bytes);
      },
      ended: () => undefined,
      trailer: pass,
    });
    const outcome = new CommandOutcome(this.#deps.clock, [stdout]);
    const current: Current = {
      request,
      inputBytes,
      events,
      outcome,
      stdout,
      sentBytes: 0,
      isAsked: false,
      end: undefined,
      idle: undefined,
    };
    this.#current = current;
    this.#settling = undefined;
    if (this.#early) outcome.settle(this.#early);
    else if (this.#root) this.#ask(current);
    return outcome.end.then((end) => {
      current.end = end;
      return end;
    });
  }

  async write(chunk: Uint8Array): Promise<void> {
    const current = this.#current;
    if (!current || current.outcome.settled) return;
    if (current.sentBytes + chunk.length > current.inputBytes) {
      throw new RangeError(`a command that gets ${current.inputBytes} bytes of input cannot be sent more`);
    }
    current.sentBytes += chunk.length;
    await this.#exec.write(chunk);
  }

  closeStdin(): void {
    // The request says where a command's input ends.
  }

  resize(): void {
    // There is no terminal.
  }

  pause(): void {
    this.#current?.outcome.pause();
    this.#exec.pause();
  }

  resume(): void {
    this.#exec.resume();
    this.#current?.outcome.resume();
  }

  flush(): void {
    this.#current?.stdout.flush();
  }

  /** Before the first command: whether the loop came up. */
  settle(): Promise<Aftermath> {
    if (this.#current?.idle === 'suspect' && this.#current.isAsked) this.#askAgain(this.#current);
    this.#settling ??= this.#settle();
    return this.#settling;
  }

  close(): Promise<void> {
    this.#closing ??= endExec(this.#deps, this.#exec);
    return this.#closing;
  }

  destroy(): void {
    this.#exec.destroy();
  }

  async #settle(): Promise<Aftermath> {
    this.resume();
    const current = this.#current;
    if (current) {
      const { end, inputBytes, sentBytes, request } = current;
      const isOrderly =
        end?.kind === 'refused' ? sentBytes === 0 : end?.kind === 'exited' && sentBytes === inputBytes;
      if (!isOrderly) return 'spent';
      if (inputBytes > 0 && !current.isAsked && !this.#early) {
        void this.#exec.write(formatOver(request.token));
      }
      current.isAsked = true;
    }
    const said = (): Aftermath | undefined => {
      if (this.#early) return 'spent';
      return current ? current.idle : this.#root && 'clean';
    };
    const word = new Promise<void>((resolve) => {
      this.#wake = () => {
        if (said()) resolve();
      };
      this.#wake();
    });
    await settlesWithin(this.#deps.clock, SETTLE_MS, word);
    return said() ?? 'spent';
  }

  #askAgain(current: Current): void {
    current.idle = undefined;
    this.#settling = undefined;
    void this.#exec.write(formatAgain(current.request.token, ''));
  }

  #ask({ request, inputBytes }: Current): void {
    void this.#exec.write(formatRequest({ ...request, inputBytes }));
  }

  #output(chunk: Buffer): void {
    const current = this.#current;
    if (!current) {
      this.#lines.push(chunk);
      return;
    }
    current.stdout.push(chunk);
    current.outcome.progress();
  }

  #controlLine(line: ControlLine | undefined): void {
    if (!line) return;
    if (line.kind === 'ready') {
      if (this.#root) return;
      this.#root = line.process;
      if (this.#current) this.#ask(this.#current);
    } else if (line.kind === 'refused' && line.token === '-') {
      const refused = { kind: 'refused', refusal: line.refusal } as const;
      this.#early ??= refused;
      this.#current?.outcome.settle(refused);
    } else if (line.token === this.#current?.request.token) {
      this.#tell(this.#current, line);
    }
    this.#wake();
  }

  #tell(current: Current, line: Exclude<ControlLine, { kind: 'ready' }>): void {
    switch (line.kind) {
      case 'user':
        current.events.user(line.user);
        return;
      case 'refused':
        current.outcome.settle({ kind: 'refused', refusal: line.refusal });
        return;
      case 'exited':
        current.outcome.exited(line.exitCode);
        return;
      case 'idle':
        current.idle = line.isAlone ? 'clean' : 'suspect';
        return;
      case 'started':
    }
  }

  #execEnded(end: ExecEnd): void {
    const lost = { kind: 'lost', exec: 'command', end } as const;
    this.#early ??= lost;
    this.#wake();
    const current = this.#current;
    if (!current || current.outcome.settled || current.outcome.cutOff()) return;
    this.flush();
    current.outcome.settle(lost);
  }
}
