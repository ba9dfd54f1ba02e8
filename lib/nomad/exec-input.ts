import { inputChunks, stdinFrame, STDIN_CLOSE_FRAME } from './exec-frames.js';

/** The part of a WebSocket that input needs. */
export interface FrameSink {
  readonly bufferedAmount: number;
  send(frame: string, done: (error?: Error) => void): void;
}

/** Frames wait here, not in the socket, while it holds more than this. */
const HIGH_WATER_BYTES = 256 * 1024;

interface Waiting {
  readonly frames: string[];
  readonly done: () => void;
}

/**
 * Standard input of one exec: a queue in order of the calls, handed to the socket only as fast as the socket gets rid
 * of it. The end of input keeps its place behind what was written before it.
 */
export class ExecInput {
  readonly #sink: FrameSink;
  readonly #queue: Waiting[] = [];
  #closed = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Resolves when the socket has all of it and room for more. After the end of input it does nothing. */
  write(chunk: Uint8Array): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return this.#enqueue(inputChunks(chunk).map(stdinFrame));
  }

  /** Ends standard input, once. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    void this.#enqueue([STDIN_CLOSE_FRAME]);
  }

  /** Drops what is queued and lets every writer go on; the socket is gone. */
  abandon(): void {
    this.#closed = true;
    for (const { done } of this.#queue.splice(0)) done();
  }

  #enqueue(frames: string[]): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push({ frames, done: resolve });
      this.#pump();
    });
  }

  readonly #pump = (): void => {
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      if (this.#sink.bufferedAmount >= HIGH_WATER_BYTES) return; // the callback of a frame under way goes on
      const frame = first.frames.shift();
      if (frame === undefined) {
        this.#queue.shift();
        first.done();
      } else {
        this.#sink.send(frame, this.#pump);
      }
    }
  };
}
