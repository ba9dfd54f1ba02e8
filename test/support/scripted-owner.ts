import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Replica } from '../../lib/cluster/api.js';
import type { ApiPair } from './api-pair.js';

/** An owner that does with each connection what a test says. */
export class ScriptedOwner implements AsyncDisposable {
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(onRequest: (socket: Socket, head: string) => void): Promise<ScriptedOwner> {
    const server = createServer({ noDelay: true });
    const owner = new ScriptedOwner(server);
    server.on('connection', (socket) => {
      owner.sockets.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', (data: Buffer) => onRequest(socket, data.toString('latin1')));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return owner;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Has runner `id` be with an owner, and after a suspicion with this replica. */
export async function placeAt(pair: ApiPair, url: string): Promise<{ id: string; owner: Replica }> {
  const { near, nearCluster } = pair;
  const claim = await near.send('POST', '/runners', { executionEnvironmentId: 1 });
  const { runnerId: id } = claim.json as { runnerId: string };
  const owner = nearCluster.add('scripted', url);
  near.runners.elsewhere.set(id, owner);
  near.runners.onLocate = () => {
    if (nearCluster.find(owner.id)) return Promise.resolve({ kind: 'elsewhere', owner });
    near.runners.elsewhere.delete(id);
    return Promise.resolve({ kind: 'own' });
  };
  return { id, owner };
}
