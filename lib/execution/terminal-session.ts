import type { ExecSession } from '../nomad/api.js';
import type { ExecEnd } from '../nomad/model.js';
import type { ControlLine, RunnerProcess } from '../shell/frames.js';
import { endMarker, parseControlLine } from '../shell/frames.js';
import type { ArmedFor, CommandRequest } from '../shell/request.js';
import { armedRequest, canWait, formatArm, formatDisarm, formatRequest } from '../shell/request.js';
import { feed, scriptReader } from '../shell/script.js';
import { controlScript, terminalLoop } from '../shell/terminal.js';
import { endExec } from './end-exec.js';
import { LineReader } from './line-reader.js';
import { MarkerScanner } from './marker-scanner.js';
import type {
  Aftermath,
  CommandEnd,
  CommandEvents,
  CommandSession,
  SessionDeps,
  SessionOptions,
} from './session.js';
import { CLOSE_MS } from './session.js';
import { TerminalCommand } from './terminal-command.js';
import { TerminalOrder } from './terminal-order.js';
import { settlesWithin } from './within.js';

/**
 * Opens a session with a terminal (shell/terminal.ts): both execs at once, so that one wait is enough. Rejects as
 * `openExec` does, with nothing left in the runner but a loop that gives up by itself when its folder does not come.
 */
export async function openTerminalSession(
  deps: SessionDeps,
  options: SessionOptions,
): Promise<CommandSession> {
  const { runner, folder, signal } = options;
  const { allocationId, task } = runner;
  const open = (command: readonly string[], tty: boolean): Promise<ExecSession> =>
    deps.nomad.openExec({ allocationId, task, command, tty, signal });
  const openControl = open(scriptReader(folder), false).then((control) => {
    void control.write(feed(controlScript(options)));
    return control;
  });
  const [control, terminal] = await Promise.allSettled([openControl, open(terminalLoop(folder), true)]);
  if (control.status === 'fulfilled' && terminal.status === 'fulfilled') {
    return new TerminalSession(deps, control.value, terminal.value, options.keep ?? false);
  }
  if (terminal.status === 'fulfilled') terminal.value.destroy();
  if (control.status === 'fulfilled') await endExec(deps, control.value);
  throw control.status === 'rejected' ? control.reason : (terminal as PromiseRejectedResult).reason;
}

/** What the keys Ctrl-D and Ctrl-C send. */
const END_OF_INPUT = Buffer.from([4]);
const INTERRUPT = Buffer.from([3]);
const INTERRUPT_MS = 100;

/** A loop that has a process waiting for the next request. */
interface Armed {
  readonly token: string;
  readonly expected: ArmedFor;
  /** Find the end that is told of the process on each stream. */
  readonly ends: { readonly stdout: MarkerScanner; readonly stderr: MarkerScanner };
  /** The process went without a request. */
  isOver: boolean;
}

class TerminalSession implements CommandSession {
  readonly ended: Promise<void>;
  readonly #deps: SessionDeps;
  readonly #control: ExecSession;
  readonly #terminal: ExecSession;
  readonly #order: TerminalOrder | undefined;
  #root: RunnerProcess | undefined;
  #current: TerminalCommand | undefined;
  #armed: Armed | undefined;
  /** How a command that is not here yet will have ended: no folder, or an exec that is gone. */
  #early: CommandEnd | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: SessionDeps, control: ExecSession, terminal: ExecSession, keep: boolean) {
    this.#deps = deps;
    this.#control = control;
    this.#terminal = terminal;
    this.#order = keep ? new TerminalOrder(deps.clock, control, terminal) : undefined;
    const lines = new LineReader((line) => this.#controlLine(parseControlLine(line)));
    control.onOutput((name, chunk) => {
      if (name === 'stdout') lines.push(chunk);
      else this.#output('stderr', chunk);
    });
    terminal.onOutput((_name, chunk) => this.#output('stdout', chunk));
    const controlEnded = control.end.then((end) => this.#execEnded('control', end));
    const terminalEnded = terminal.end.then((end) => this.#execEnded('command', end));
    this.ended = Promise.race([controlEnded, terminalEnded]);
  }

  get root(): RunnerProcess | undefined {
    return this.#root;
  }

  run(request: CommandRequest, events: CommandEvents): Promise<CommandEnd> {
    const armed = this.#armed;
    if (!armed) return this.#run(request, events, formatRequest(request));
    const expected = { ...request, token: armed.token };
    const text = armed.isOver ? undefined : armedRequest(expected, armed.expected);
    if (!text) return this.#disarm(armed).then(() => this.#run(request, events, formatRequest(request)));
    this.#armed = undefined;
    return this.#run(expected, events, text, true);
  }

  arm(token: string, expected: ArmedFor): void {
    if (!this.#order || this.#early || this.#armed || !canWait(expected.user)) return;
    const end = (): MarkerScanner => new MarkerScanner(endMarker(token));
    this.#armed = { token, expected, ends: { stdout: end(), stderr: end() }, isOver: false };
    this.#current = undefined;
    this.#order.begin(token);
    void this.#control.write(formatArm(token, expected));
  }

  write(chunk: Uint8Array): Promise<void> {
    this.#order?.touch();
    return this.#terminal.write(chunk);
  }

  closeStdin(): void {
    void this.write(END_OF_INPUT);
  }

  resize(columns: number, rows: number): void {
    this.#order?.touch();
    this.#terminal.resize(columns, rows);
  }

  async settle(): Promise<Aftermath> {
    if (!this.#order || this.#early || !this.#current?.isWhole) return 'spent';
    return this.#order.restored();
  }

  pause(): void {
    this.#current?.pause();
    this.#terminal.pause();
    this.#control.pause();
  }

  resume(): void {
    this.#control.resume();
    this.#terminal.resume();
    this.#current?.resume();
  }

  flush(): void {
    this.#current?.flush();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  destroy(): void {
    this.#control.destroy();
    this.#terminal.destroy();
  }

  async #close(): Promise<void> {
    this.#terminal.resume();
    await Promise.all([endExec(this.#deps, this.#control), this.#endTerminal()]);
    this.#terminal.destroy();
  }

  /**
   * The loop ends with its control side, unless it still waits for the folder: then it is known to nobody and has to be
   * interrupted, once its terminal is there. A loop that has begun is deaf to that.
   */
  async #endTerminal(): Promise<void> {
    const { clock } = this.#deps;
    for (let waitedMs = 0; waitedMs < CLOSE_MS; waitedMs += INTERRUPT_MS) {
      if (!this.#root) void this.#terminal.write(INTERRUPT);
      if (await settlesWithin(clock, INTERRUPT_MS, this.#terminal.end)) return;
    }
  }

  #run(request: CommandRequest, events: CommandEvents, text: Buffer, isArmed = false): Promise<CommandEnd> {
    const command = new TerminalCommand(this.#deps.clock, request, events, isArmed);
    this.#current = command;
    this.#order?.begin(request.token);
    if (this.#early) command.lost(this.#early);
    else void this.#control.write(text);
    return command.ended;
  }

  /** Sends the waiting process away. Resolves when the loop takes requests again, or never will. */
  async #disarm({ isOver }: Armed): Promise<void> {
    if (!isOver) void this.#control.write(formatDisarm());
    await this.#order?.restored();
    this.#armed = undefined;
  }

  /** What the loop says while it is armed and nothing was asked for. */
  #armedLine(armed: Armed, line: Exclude<ControlLine, { kind: 'ready' }>): void {
    if (line.token !== armed.token) return;
    if (line.kind === 'exited') armed.isOver = true;
    if (line.kind !== 'idle') return;
    this.#order?.told(line.isAlone ? 'clean' : 'suspect');
  }

  #output(name: 'stdout' | 'stderr', chunk: Buffer): void {
    if (this.#current) this.#current.output(name, chunk);
    else if (this.#armed?.ends[name].push(chunk).after) this.#armed.isOver = true;
  }

  #controlLine(line: ControlLine | undefined): void {
    if (line?.kind === 'ready') this.#root = line.process;
    if (!line || line.kind === 'ready') return;
    const current = this.#current;
    if (!current) {
      if (this.#armed) this.#armedLine(this.#armed, line);
      else if (line.kind === 'refused') this.#early ??= line;
      return;
    }
    if (line.token !== current.request.token && line.token !== '-') return;
    if (line.kind === 'idle') this.#order?.told(line.isAlone ? 'clean' : 'suspect');
    else {
      if (line.kind === 'started') this.#order?.begin(line.token);
      current.told(line);
    }
  }

  #execEnded(exec: 'command' | 'control', end: ExecEnd): void {
    const lost = { kind: 'lost', exec, end } as const;
    this.#early ??= lost;
    this.#order?.told('spent');
    this.#current?.lost(lost);
  }
}
