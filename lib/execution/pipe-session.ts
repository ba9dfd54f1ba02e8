import type { ExecSession } from '../nomad/api.js';
import type { ExecEnd } from '../nomad/model.js';
import type { ControlLine, RunnerProcess } from '../shell/frames.js';
import { parseControlLine } from '../shell/frames.js';
import { pipeScript } from '../shell/pipe.js';
import type { CommandRequest } from '../shell/request.js';
import { formatRequest } from '../shell/request.js';
import { feed, scriptReader } from '../shell/script.js';
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

/** Opens a session without a terminal, for one command (shell/pipe.ts). Rejects as `openExec` does. */
export async function openPipeSession(deps: SessionDeps, options: SessionOptions): Promise<CommandSession> {
  const { runner, folder, signal } = options;
  const { allocationId, task } = runner;
  const exec = await deps.nomad.openExec({
    allocationId,
    task,
    command: scriptReader(folder),
    tty: false,
    signal,
  });
  return new PipeSession(deps, exec, folder);
}

class PipeSession implements CommandSession {
  readonly #deps: SessionDeps;
  readonly #exec: ExecSession;
  readonly #folder: string;
  #root: RunnerProcess | undefined;
  #streams: readonly FramedStream[] = [];
  #outcome: CommandOutcome | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: SessionDeps, exec: ExecSession, folder: string) {
    this.#deps = deps;
    this.#exec = exec;
    this.#folder = folder;
  }

  get root(): RunnerProcess | undefined {
    return this.#root;
  }

  get ended(): Promise<void> {
    return this.#exec.end.then(() => undefined);
  }

  run(request: CommandRequest, events: CommandEvents): Promise<CommandEnd> {
    const lines = new LineReader((line) => this.#controlLine(parseControlLine(line), request, events));
    const exitCode = new LineReader((line) => {
      if (/^\d{1,3}$/.test(line)) outcome.exited(Number(line));
    });
    const ended = (): void => undefined;
    const stdout = new FramedStream(request.token, {
      preamble: (bytes) => lines.push(bytes),
      started: () => events.started(),
      output: (bytes) => events.output('stdout', bytes),
      ended,
      trailer: (bytes) => exitCode.push(bytes),
    });
    const stderr = new FramedStream(request.token, {
      started: () => events.started(),
      output: (bytes) => events.output('stderr', bytes),
      ended,
    });
    const outcome = new CommandOutcome(this.#deps.clock, [stdout, stderr]);
    this.#streams = [stdout, stderr];
    this.#outcome = outcome;
    this.#exec.onOutput((name, chunk) => {
      if (outcome.settled) return;
      (name === 'stdout' ? stdout : stderr).push(chunk);
      outcome.progress();
    });
    void this.#exec.end.then((end) => this.#execEnded(outcome, end));
    // One message: the reader of the request may take more than its length, so nothing else follows until the start.
    void this.#exec.write(Buffer.concat([feed(pipeScript(this.#folder)), formatRequest(request)]));
    return outcome.end;
  }

  write(chunk: Uint8Array): Promise<void> {
    return this.#exec.write(chunk);
  }

  closeStdin(): void {
    this.#exec.closeStdin();
  }

  resize(): void {
    // There is no terminal.
  }

  pause(): void {
    this.#outcome?.pause();
    this.#exec.pause();
  }

  resume(): void {
    this.#exec.resume();
    this.#outcome?.resume();
  }

  flush(): void {
    for (const stream of this.#streams) stream.flush();
  }

  settle(): Promise<Aftermath> {
    return Promise.resolve('spent');
  }

  close(): Promise<void> {
    this.#closing ??= endExec(this.#deps, this.#exec);
    return this.#closing;
  }

  destroy(): void {
    this.#exec.destroy();
  }

  #controlLine(line: ControlLine | undefined, request: CommandRequest, events: CommandEvents): void {
    switch (line?.kind) {
      case 'ready':
        this.#root = line.process;
        return;
      case 'user':
        if (line.token === request.token) events.user(line.user);
        return;
      case 'refused':
        this.#outcome?.settle({ kind: 'refused', refusal: line.refusal });
        return;
      case 'started':
      case 'exited':
      case 'idle':
      case undefined:
    }
  }

  #execEnded(outcome: CommandOutcome, end: ExecEnd): void {
    if (outcome.settled || outcome.cutOff()) return;
    this.flush();
    outcome.settle({ kind: 'lost', exec: 'command', end });
  }
}
