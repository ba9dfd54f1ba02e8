import { StringDecoder } from 'node:string_decoder';
import type { ExecutionSink } from './api.js';

type Stream = 'stdout' | 'stderr';

/** What can be kept from printing more. */
export interface Source {
  pause(): void;
  resume(): void;
}

export interface CommandOutputOptions {
  readonly sink: ExecutionSink;
  /** Most bytes of both streams together; 0 means any number. */
  readonly limitBytes: number;
}

/**
 * What a command prints, on its way to the client: decoded on each stream by itself, cut at the limit, and its source
 * held back while the client is slow.
 *
 * The limit counts bytes as they were printed. Exactly as many are passed on, and the next one is over it. A character
 * that the limit cuts is left out, so what the client has is always the beginning of what the whole output would be.
 */
export class CommandOutput {
  readonly #sink: ExecutionSink;
  readonly #limitBytes: number;
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') };
  #printedBytes = 0;
  #over = false;
  #held = false;

  constructor({ sink, limitBytes }: CommandOutputOptions) {
    this.#sink = sink;
    this.#limitBytes = limitBytes === 0 ? Infinity : limitBytes;
  }

  /** False once the command has printed more than it may; nothing is passed on from then. */
  push(source: Source, stream: Stream, bytes: Buffer): boolean {
    const taken = bytes.subarray(0, this.#limitBytes - this.#printedBytes);
    this.#printedBytes += taken.length;
    if (taken.length < bytes.length) this.#over = true;
    const text = this.#decoders[stream].write(taken);
    if (text !== '' && !this.#sink.output(stream, text)) this.#holdBack(source);
    return !this.#over;
  }

  /** No more comes: characters that stay incomplete become U+FFFD, unless it was the limit that cut them. */
  end(): void {
    if (this.#over) return;
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = this.#decoders[stream].end();
      if (text !== '') this.#sink.output(stream, text);
    }
  }

  /** The client is slow, so the program has to be. */
  #holdBack(source: Source): void {
    if (this.#held) return;
    this.#held = true;
    source.pause();
    const goOn = (): void => {
      this.#held = false;
      source.resume();
    };
    this.#sink.drained().then(goOn, goOn);
  }
}
