import { ServiceError } from '../base/errors.js';
import type { ExecutionRequest } from './api.js';

/** What all prepared requests together may take of the memory. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * A bound on the prepared executions of all runners that wait for their sockets: clients may prepare and never connect,
 * and each request holds a command and variables.
 */
export class WaitingRoom {
  readonly #maxCount: number;
  #count = 0;
  #bytes = 0;

  constructor(maxCount: number) {
    this.#maxCount = maxCount;
  }

  /** Takes a request in and returns how it leaves, for one call. TOO_MANY_EXECUTIONS where there is no room. */
  enter(request: ExecutionRequest): () => void {
    const bytes = sizeOf(request);
    if (this.#count >= this.#maxCount || this.#bytes + bytes > MAX_BYTES) {
      throw new ServiceError(
        'TOO_MANY_EXECUTIONS',
        `${this.#count} prepared executions of this service wait for their sockets; open those first`,
        { details: { limit: this.#maxCount }, retryAfterSeconds: 5 },
      );
    }
    this.#count += 1;
    this.#bytes += bytes;
    return () => {
      this.#count -= 1;
      this.#bytes -= bytes;
    };
  }
}

function sizeOf({ command, environment, workingDirectory = '' }: ExecutionRequest): number {
  const texts = [command, workingDirectory, ...Object.entries(environment).flat()];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
