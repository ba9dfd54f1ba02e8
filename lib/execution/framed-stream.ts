import { endMarker, startMarker } from '../shell/frames.js';
import { MarkerScanner } from './marker-scanner.js';

/** What becomes of the parts of a framed stream. */
export interface FrameHandlers {
  /** Before the start marker: lines of ours, or noise. */
  readonly preamble?: (bytes: Buffer) => void;
  readonly started?: () => void;
  readonly output: (bytes: Buffer) => void;
  readonly ended: () => void;
  /** After the end marker: a line of ours, or late output of a child in the background. */
  readonly trailer?: (bytes: Buffer) => void;
}

/**
 * One stream of a command: preamble, start marker, output, end marker, trailer.
 *
 * Whatever stands outside the two markers is not the command's: greetings of a shell, an echo of the terminal, late
 * output of children.
 */
export class FramedStream {
  readonly #handlers: FrameHandlers;
  readonly #end: MarkerScanner;
  #start: MarkerScanner | undefined;
  #ended = false;
  #isHeadless = false;
  #passesOver = false;

  constructor(token: string, handlers: FrameHandlers) {
    this.#handlers = handlers;
    this.#start = new MarkerScanner(startMarker(token));
    this.#end = new MarkerScanner(endMarker(token));
  }

  get started(): boolean {
    return this.#start === undefined;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * The end marker came without the start marker: the command never began, or its start was lost, as a terminal throws
   * away what was not read yet when a key interrupts.
   */
  get isHeadless(): boolean {
    return this.#isHeadless;
  }

  /** Takes a headless stream for what it is: without output, and over. */
  endHeadless(): void {
    if (!this.#isHeadless) return;
    this.#isHeadless = false;
    this.#start = undefined;
    this.#ended = true;
    this.#handlers.ended();
  }

  /** An end marker without a start, which came or is going to, is of something else. */
  passOver(): void {
    this.#passesOver = !this.#isHeadless && this.#start !== undefined;
    this.#isHeadless = false;
  }

  push(chunk: Buffer): void {
    let rest: Buffer | undefined = chunk;
    if (this.#start) {
      const { before, after } = this.#start.push(chunk);
      if (before.length > 0) {
        this.#handlers.preamble?.(before);
        if (this.#end.push(before).after) {
          this.#isHeadless = !this.#passesOver;
          this.#passesOver = false;
        }
      }
      if (!after) return;
      this.#start = undefined;
      this.#isHeadless = false;
      this.#end.flush();
      this.#handlers.started?.();
      rest = after;
    }
    if (!this.#ended) {
      const { before, after } = this.#end.push(rest);
      if (before.length > 0) this.#handlers.output(before);
      if (!after) return;
      this.#ended = true;
      this.#handlers.ended();
      rest = after;
    }
    if (rest.length > 0) this.#handlers.trailer?.(rest);
  }

  /** Gives out what was held back, once it is clear that no end marker comes. */
  flush(): void {
    if (this.#start || this.#ended) return;
    const held = this.#end.flush();
    if (held.length > 0) this.#handlers.output(held);
  }
}
