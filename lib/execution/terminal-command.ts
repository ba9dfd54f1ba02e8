import type { Clock } from '../base/clock.js';
import type { ControlLine } from '../shell/frames.js';
import type { CommandRequest } from '../shell/request.js';
import { CommandOutcome } from './command-outcome.js';
import { FramedStream } from './framed-stream.js';
import type { CommandEnd, CommandEvents } from './session.js';

export type CommandLine = Exclude<ControlLine, { kind: 'ready' | 'idle' }>;

/**
 * One command in a session with a terminal: what its two streams and the control lines say of it together.
 *
 * The process that waits in an armed loop is to run it where `isOfWaiting` is set. Should that have gone before it took the
 * request, an exit and the ends of both streams come without a start, and the loop runs the command after all. A
 * single stream without a start has another cause: a key that interrupts has the terminal throw away what was not read
 * yet.
 */
export class TerminalCommand {
  /** With the token of the loop, where it was armed. */
  readonly request: CommandRequest;
  readonly ended: Promise<CommandEnd>;
  readonly #events: CommandEvents;
  readonly #outcome: CommandOutcome;
  readonly #streams: { readonly stdout: FramedStream; readonly stderr: FramedStream | undefined };
  #isOfWaiting: boolean;
  #end: CommandEnd | undefined;

  constructor(clock: Clock, request: CommandRequest, events: CommandEvents, isOfWaiting: boolean) {
    this.request = request;
    this.#events = events;
    this.#isOfWaiting = isOfWaiting;
    const stream = (name: 'stdout' | 'stderr'): FramedStream =>
      new FramedStream(request.token, {
        started: () => events.started(),
        output: (bytes) => events.output(name, bytes),
        ended: () => undefined,
      });
    this.#streams = {
      stdout: stream('stdout'),
      stderr: request.splitStderr ? stream('stderr') : undefined,
    };
    this.#outcome = new CommandOutcome(clock, this.#all());
    this.ended = this.#outcome.end.then((end) => (this.#end = end));
  }

  /** Left nothing of its own on the way: it never began, or all of its output is here. */
  get isWhole(): boolean {
    if (this.#end?.kind === 'refused') return true;
    return this.#end?.kind === 'exited' && this.#all().every(({ ended }) => ended);
  }

  output(name: 'stdout' | 'stderr', chunk: Buffer): void {
    if (this.#outcome.settled) return;
    this.#streams[name]?.push(chunk);
    this.#judgeHeadless();
    this.#outcome.progress();
  }

  told(line: CommandLine): void {
    switch (line.kind) {
      case 'user':
        this.#events.user(line.user);
        return;
      case 'started':
        // Said by the loop alone, so the process that waited is gone.
        if (this.#isOfWaiting) this.#passOver();
        this.#events.started();
        return;
      case 'exited':
        this.#outcome.exited(line.exitCode);
        return;
      case 'refused':
        this.#outcome.settle(line);
    }
  }

  pause(): void {
    this.#outcome.pause();
  }

  resume(): void {
    this.#outcome.resume();
  }

  flush(): void {
    for (const stream of this.#all()) stream.flush();
  }

  /** The session is over; a command whose exit code is known ended by itself all the same. */
  lost(end: CommandEnd): void {
    if (this.#outcome.settled || this.#outcome.cutOff()) return;
    this.flush();
    this.#outcome.settle(end);
  }

  #all(): readonly FramedStream[] {
    const { stdout, stderr } = this.#streams;
    return stderr ? [stdout, stderr] : [stdout];
  }

  /** The exit and the ends of the process that waited are none of the command's. */
  #passOver(): void {
    this.#isOfWaiting = false;
    this.#outcome.retractExit();
    for (const stream of this.#all()) stream.passOver();
  }

  #judgeHeadless(): void {
    const streams = this.#all();
    if (!streams.some(({ isHeadless }) => isHeadless)) return;
    if (this.#isOfWaiting && streams.every(({ isHeadless }) => isHeadless)) {
      this.#passOver();
    } else if (streams.some(({ started }) => started)) {
      for (const stream of streams) stream.endHeadless();
    }
  }
}
