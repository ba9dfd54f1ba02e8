import type { Clock } from '../../base/clock.js';

export interface RelayedCommandsOptions {
  readonly kind: 'execution' | 'session';
  readonly isSeraiV1: boolean;
  readonly clock: Clock;
}

const START = '{"type":"start"';
const ENDS = ['{"type":"exit"', '{"type":"timeout"', '{"type":"error"'];

/** What runs on a relayed socket, as the messages of its server tell. An execution runs from the beginning. */
export class RelayedCommands {
  readonly #options: RelayedCommandsOptions;
  #startedAtMs: number | undefined;
  /** Of the command that runs, on a session. */
  #id: string | undefined;
  #hasEnded = false;

  constructor(options: RelayedCommandsOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#options.kind === 'session' ? this.#id !== undefined : !this.#hasEnded;
  }

  /** The server said this. */
  told(text: string): void {
    if (text.startsWith(START)) {
      this.#startedAtMs = this.#options.clock.monotonicMs();
      this.#id = idIn(text);
    } else if (ENDS.some((end) => text.startsWith(end))) {
      this.#hasEnded = true;
      // The end of a command that never began leaves the one that runs alone.
      if (idIn(text) === this.#id) this.#id = undefined;
    }
  }

  /** The message that ends what runs; undefined where nothing does. */
  end(why: string): string | undefined {
    if (!this.isRunning) return undefined;
    const { isSeraiV1, clock } = this.#options;
    const durationMs =
      this.#startedAtMs === undefined ? 0 : Math.round(clock.monotonicMs() - this.#startedAtMs);
    return JSON.stringify({
      type: 'error',
      data: why,
      ...(isSeraiV1 ? { durationMs, oomKilled: false } : {}),
      ...(this.#id === undefined ? {} : { id: this.#id }),
    });
  }
}

/** Undefined also for what is no JSON: it is the client's to judge, and no reason to end here. */
function idIn(text: string): string | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof message !== 'object' || message === null || !('id' in message)) return undefined;
  return typeof message.id === 'string' ? message.id : undefined;
}
