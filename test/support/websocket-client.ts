import { WebSocket } from 'ws';
import type { ServerMessage } from '../../lib/protocol/websocket.js';
import { eventually } from './waiting.js';

export interface OpenOptions {
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
  readonly autoPong?: boolean;
  readonly ca?: string;
  readonly servername?: string;
}

/** A client of an execution that keeps all it got. */
export class SocketClient {
  readonly socket: WebSocket;
  readonly messages: ServerMessage[] = [];
  /** Called with each message. */
  onMessage: (message: ServerMessage) => void = () => undefined;
  binaryFrames = 0;
  closeCode: number | undefined;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.binaryFrames += 1;
      const message = JSON.parse(data.toString('utf8')) as ServerMessage;
      this.messages.push(message);
      this.onMessage(message);
    });
    socket.on('close', (code) => (this.closeCode = code));
    socket.on('error', () => undefined);
  }

  /** Resolves once open. Rejects with the status where the upgrade is refused. */
  static open(url: string, { protocols, ...options }: OpenOptions = {}): Promise<SocketClient> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, protocols, { perMessageDeflate: true, ...options });
      const client = new SocketClient(socket);
      socket.once('open', () => resolve(client));
      socket.once('unexpected-response', (_req, res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        res.on('end', () => reject(new UpgradeRefused(res.statusCode ?? 0, text, res.headers)));
      });
      socket.once('error', reject);
    });
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type);
  }

  /** All text of one stream. */
  text(stream: 'stdout' | 'stderr'): string {
    return this.messages.map((message) => (message.type === stream ? message.data : '')).join('');
  }

  async closed(): Promise<number | undefined> {
    await eventually('the socket to close', () => this.closeCode !== undefined);
    return this.closeCode;
  }
}

export class UpgradeRefused extends Error {
  readonly status: number;
  readonly body: string;
  readonly headers: NodeJS.Dict<string | string[]>;

  constructor(status: number, body: string, headers: NodeJS.Dict<string | string[]>) {
    super(`the upgrade was refused with ${status}: ${body}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}
