import { writeSync } from 'node:fs';

/**
 * Input for a terminal, through the descriptor of its master, which does not block.
 *
 * A terminal takes no more than a few kilobytes that nobody reads. A stream of Node's would then try again without a
 * pause and freeze the process (libuv writes to terminals as if they could block), so what is left waits here and is tried
 * again after a short time, for as long as the terminal is open.
 */
export class PtyInput {
  readonly #fd: number;
  readonly #waiting: { rest: Buffer; readonly resolve: () => void }[] = [];
  #retry: NodeJS.Timeout | undefined;
  #delayMs = MIN_DELAY_MS;
  #isOpen = true;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Returns a promise where not all of it was taken at once; it resolves when that is done, or the terminal closed. */
  write(chunk: Buffer): void | Promise<void> {
    if (!this.#isOpen) return;
    const rest = this.#waiting.length === 0 ? this.#push(chunk) : chunk;
    if (rest.length === 0) return;
    return new Promise((resolve) => {
      this.#waiting.push({ rest, resolve });
      this.#tryLater();
    });
  }

  /** Drops what waits. To be called before the descriptor is closed. */
  close(): void {
    this.#isOpen = false;
    clearTimeout(this.#retry);
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** What the terminal did not take. */
  #push(chunk: Buffer): Buffer {
    let sent = 0;
    while (sent < chunk.length) {
      try {
        sent += writeSync(this.#fd, chunk, sent);
      } catch (error) {
        if (isFull(error)) break;
        return Buffer.alloc(0); // the terminal is gone, and nobody is left who could read it
      }
    }
    if (sent > 0) this.#delayMs = MIN_DELAY_MS;
    return chunk.subarray(sent);
  }

  #tryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#drain();
    }, this.#delayMs);
    this.#delayMs = Math.min(MAX_DELAY_MS, this.#delayMs * 2);
  }

  #drain(): void {
    for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
      first.rest = this.#push(first.rest);
      if (first.rest.length > 0) {
        this.#tryLater();
        return;
      }
      this.#waiting.shift();
      first.resolve();
    }
  }
}

const MIN_DELAY_MS = 2;
const MAX_DELAY_MS = 100;

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EINTR');
}
