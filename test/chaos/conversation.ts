import { WebSocket } from 'ws';

/** What a service says on a socket, as far as it is looked at. */
export interface Message {
  readonly type: string;
  readonly id?: string;
  readonly data?: unknown;
}

export const isEnd = ({ type }: Message): boolean => ['exit', 'error', 'timeout'].includes(type);

/** One socket, with all that came over it. */
export class Conversation {
  readonly messages: Message[] = [];
  /** Where the upgrade was refused. */
  status: number | undefined;
  readonly #socket: WebSocket;
  readonly #watchers = new Set<() => void>();
  #isOver = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    const changed = (): void => this.#watchers.forEach((watcher) => watcher());
    socket.on('message', (data: Buffer) => {
      this.messages.push(JSON.parse(data.toString('utf8')) as Message);
      changed();
    });
    socket.on('unexpected-response', (_request, response) => {
      this.status = response.statusCode;
      response.resume();
      socket.terminate();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#isOver = true;
      changed();
    });
  }

  say(message: object): void {
    const send = (): void => this.#socket.send(JSON.stringify(message), () => undefined);
    if (this.#socket.readyState === WebSocket.OPEN) send();
    else this.#socket.once('open', send);
  }

  /** Drops the connection without a goodbye. */
  vanish(): void {
    this.#socket.terminate();
  }

  over(timeoutMs: number): Promise<void> {
    return this.until(() => false, timeoutMs);
  }

  /** Resolves when that holds, the socket is closed or the time is over; then it is dropped. */
  async until(condition: (messages: readonly Message[]) => boolean, timeoutMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      const look = (): void => {
        if (!this.#isOver && !condition(this.messages)) return;
        clearTimeout(timer);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
    this.#socket.terminate();
  }
}
