import type { IncomingMessage } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { HttpFailure } from '../failure.js';
import type { Faults } from '../faults.js';
import type { ExecRequest, ExecSocketDeps } from './exec-socket.js';
import { ExecSocket } from './exec-socket.js';

export interface ExecServerDeps extends Omit<ExecSocketDeps, 'cluster'> {
  readonly cluster: () => ExecSocketDeps['cluster'];
  readonly faults: () => Faults;
}

const EXEC_PATH = /^\/v1\/client\/allocation\/([^/]+)\/exec$/;

/** Takes upgrade requests for `/v1/client/allocation/<id>/exec` and knows the sockets that are open. */
export class ExecServer {
  readonly #deps: ExecServerDeps;
  readonly #sockets = new Set<ExecSocket>();
  readonly #server = new WebSocketServer({ noServer: true, perMessageDeflate: false });

  constructor(deps: ExecServerDeps) {
    this.#deps = deps;
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => undefined); // the peer went away in the middle; it closes
    let wanted: ExecRequest;
    try {
      const instead = await this.#deps.faults().meet(new URL(request.url ?? '/', 'http://agent').pathname);
      if (instead) throw new HttpFailure(instead.status, instead.text);
      wanted = parseRequest(request);
    } catch (error) {
      const { status, message } = error instanceof HttpFailure ? error : new HttpFailure(500, String(error));
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}`;
      const length = Buffer.byteLength(message);
      socket.end(`${head}\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${message}`);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const exec = new ExecSocket(webSocket, wanted, { ...this.#deps, cluster: this.#deps.cluster() });
      this.#sockets.add(exec);
      webSocket.on('close', () => this.#sockets.delete(exec));
    });
  }

  /** Breaks connections off: those of one allocation, or all. Returns how many. */
  drop(allocationId?: string): number {
    const chosen = [...this.#sockets].filter(
      (socket) => allocationId === undefined || socket.allocationId === allocationId,
    );
    for (const socket of chosen) socket.drop();
    return chosen.length;
  }

  get size(): number {
    return this.#sockets.size;
  }
}

/** Throws what Nomad answers instead of the upgrade. */
function parseRequest(request: IncomingMessage): ExecRequest {
  const url = new URL(request.url ?? '/', 'http://agent');
  const [, allocationId] = EXEC_PATH.exec(url.pathname) ?? [];
  if (allocationId === undefined) throw new HttpFailure(404, '');
  return {
    allocationId: decodeURIComponent(allocationId),
    task: url.searchParams.get('task') ?? '',
    command: parseCommand(url.searchParams.get('command') ?? ''),
    tty: parseFlag(url.searchParams.get('tty'), 'tty'),
    handshake: parseFlag(url.searchParams.get('ws_handshake'), 'ws_handshake'),
  };
}

function parseCommand(text: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new HttpFailure(500, 'failed to marshal command into json: unexpected end of JSON input');
  }
  if (!Array.isArray(value) || !value.every((word) => typeof word === 'string')) {
    throw new HttpFailure(
      500,
      'failed to marshal command into json: json: cannot unmarshal into type []string',
    );
  }
  return value;
}

function parseFlag(text: string | null, name: string): boolean {
  if (text === null || text === '') return false;
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(text)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(text)) return false;
  const problem = `strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`;
  throw new HttpFailure(500, `${name} value is not a boolean: ${problem}`);
}
