import { SERAI_V1 } from '../../lib/protocol/subprotocols.js';
import type { ExecuteBody } from '../../lib/protocol/http.js';
import type { SessionClientMessage, SessionServerMessage } from '../../lib/protocol/websocket.js';
import { eventually } from './waiting.js';
import type { OpenOptions } from './websocket-client.js';
import { SocketClient } from './websocket-client.js';

const ENDS = ['exit', 'timeout', 'error'];

/** A client of a session that keeps all it got. */
export class SessionClient {
  readonly client: SocketClient;
  readonly runnerId: string;

  private constructor(client: SocketClient, runnerId: string) {
    this.client = client;
    this.runnerId = runnerId;
  }

  static async open(base: string, runnerId: string, options: OpenOptions = {}): Promise<SessionClient> {
    const url = `${base.replace(/^http/, 'ws')}/runners/${runnerId}/session`;
    return new SessionClient(await SocketClient.open(url, { protocols: [SERAI_V1], ...options }), runnerId);
  }

  get messages(): SessionServerMessage[] {
    return this.client.messages as SessionServerMessage[];
  }

  /** The id of each end, in order. */
  get ended(): string[] {
    return this.messages.flatMap((message) =>
      'id' in message && ENDS.includes(message.type) ? [message.id] : [],
    );
  }

  send(message: SessionClientMessage | object): void {
    this.client.socket.send(JSON.stringify(message));
  }

  exec(id: string, command = 'true', body: Partial<ExecuteBody> = {}): void {
    this.send({ type: 'exec', id, command, ...body });
  }

  /** All that came for one command. */
  of(id: string): SessionServerMessage[] {
    return this.messages.filter((message) => 'id' in message && message.id === id);
  }

  /** All text that a command printed on one stream. */
  text(id: string, stream: 'stdout' | 'stderr' = 'stdout'): string {
    return this.of(id)
      .map((message) => (message.type === stream ? message.data : ''))
      .join('');
  }

  /** The end of a command, once it is there. */
  async end(id: string): Promise<SessionServerMessage> {
    await eventually(`the end of ${id}`, () => this.ended.includes(id), 30_000);
    const end = this.of(id).find(({ type }) => ENDS.includes(type));
    if (!end) throw new Error(`no end of ${id}`);
    return end;
  }

  closed(): Promise<number | undefined> {
    return this.client.closed();
  }
}
