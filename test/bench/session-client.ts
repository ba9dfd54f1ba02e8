import { once } from 'node:events';
import WebSocket from 'ws';
import type { CommandFigures, Message, Wanted } from './client.js';
import { CommandWatch } from './client.js';

/** One socket, many commands: `GET /runners/{id}/session`. */
export class SessionClient implements AsyncDisposable {
  readonly #socket: WebSocket;
  #count = 0;
  #current: { readonly id: string; readonly take: (message: Message) => void } | undefined;
  #fail: (error: Error) => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message;
      if (message.id === this.#current?.id) this.#current?.take(message);
      else this.#fail(new Error(`a session said ${data.toString()} beside ${this.#current?.id}`));
    });
    socket.on('close', (code) => this.#fail(new Error(`a session was closed with ${code}`)));
    socket.on('error', (error) => this.#fail(error));
  }

  static async open(url: string, runnerId: string): Promise<SessionClient> {
    const address = `${url.replace('http', 'ws')}/api/v1/runners/${runnerId}/session`;
    const socket = new WebSocket(address, 'serai.v1', { perMessageDeflate: false, skipUTF8Validation: true });
    await once(socket, 'open');
    return new SessionClient(socket);
  }

  /** Runs a command to its end; one at a time. */
  run(command: string, wanted?: Wanted | string): Promise<CommandFigures> {
    this.#count += 1;
    const id = String(this.#count);
    const watch = new CommandWatch(command, wanted);
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#current = {
        id,
        take: (message) => {
          watch.take(message);
          if (!['exit', 'timeout', 'error'].includes(message.type)) return;
          try {
            resolve(watch.figures());
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        },
      };
      this.#socket.send(JSON.stringify({ type: 'exec', id, command, timeLimit: 600 }));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail = () => undefined;
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}
