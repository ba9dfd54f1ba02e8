import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { RecordedRequest } from './scripted-nomad.js';

/** Nomad's end of one exec socket: sends what a test says, records what the client sends. */
export class ScriptedExec {
  readonly request: RecordedRequest;
  /** Frames of the client, parsed; what is no JSON stays a string. Keep-alives (`{}`) are among them. */
  readonly received: unknown[] = [];
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #watchers = new Set<() => void>();

  constructor(request: RecordedRequest, webSocket: WebSocket, socket: Socket) {
    this.request = request;
    this.#webSocket = webSocket;
    this.#socket = socket;
    webSocket.on('error', () => undefined); // clients may leave at any time
    webSocket.on('message', (data: Buffer) => {
      this.received.push(parsed(data.toString('utf8')));
      for (const watcher of this.#watchers) watcher();
    });
  }

  /** The command as it stands in the query. */
  get command(): unknown {
    return parsed(this.request.query.get('command') ?? '');
  }

  /** What arrived on standard input so far. */
  get stdin(): Buffer {
    return Buffer.concat(this.received.map(stdinOf));
  }

  /** Sends a frame: a string or bytes as they are, anything else as JSON. Resolves when the socket took it. */
  send(frame: unknown): Promise<void> {
    const data = typeof frame === 'string' || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame);
    return new Promise((resolve) => this.#webSocket.send(data, { binary: false }, () => resolve()));
  }

  /** Output of the program. */
  output(stream: 'stdout' | 'stderr', bytes: string | Buffer): Promise<void> {
    return this.send({ [stream]: { data: Buffer.from(bytes).toString('base64') } });
  }

  /** The exit frame as Nomad sends it: without `exit_code` where it is 0. */
  exit(exitCode: number): Promise<void> {
    return this.send({ exited: true, result: exitCode === 0 ? {} : { exit_code: exitCode } });
  }

  /** Ends the socket with a close frame. */
  close(code?: number, reason?: string): void {
    this.#webSocket.close(code, reason);
  }

  /** Drops the connection without a goodbye. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** Ends the connection without a close frame. */
  hangUp(): void {
    this.#socket.end();
  }

  /** Bytes on the wire as they are, for frames that no WebSocket would send. */
  writeRaw(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** Stops and restarts reading, as a server does that is busy. */
  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  /** Resolves once `received` satisfies `condition`. */
  until(condition: (received: readonly unknown[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const watcher = (): void => {
        if (!condition(this.received)) return;
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
      watcher();
    });
  }

  /** Resolves with the close code once the client's end is gone. */
  closed(): Promise<number> {
    return new Promise((resolve) => {
      if (this.#webSocket.readyState === this.#webSocket.CLOSED) resolve(1006);
      else this.#webSocket.once('close', resolve);
    });
  }
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return text;
  }
}

function stdinOf(frame: unknown): Buffer {
  const data = (frame as { stdin?: { data?: string } } | null)?.stdin?.data;
  return Buffer.from(data ?? '', 'base64');
}
