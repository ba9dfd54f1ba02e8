import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { expect } from 'chai';
import type { Replica } from '../../../lib/cluster/api.js';
import { ApiPair } from '../../support/api-pair.js';
import { upgradeStatus } from '../../support/upgrade-status.js';
import { eventually } from '../../support/waiting.js';

/** An owner that does with each connection what a test says. */
class ScriptedOwner implements AsyncDisposable {
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
async function placeAt(pair: ApiPair, url: string): Promise<{ id: string; owner: Replica }> {
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

describe('requests for the runner of an owner that is lost', () => {
  it('are served by a takeover where its port is closed, with their bodies', async () => {
    await using pair = await ApiPair.open();
    const gone = await ScriptedOwner.open(() => undefined);
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    const { id, owner } = await placeAt(pair, url);
    const body = { copy: [{ path: './a', content: Buffer.alloc(2_000_000, 'z').toString('base64') }] };
    const answer = await pair.near.send('PATCH', `/runners/${id}/files`, body);
    expect(answer.status, answer.text).to.equal(204);
    expect(pair.near.files.contents.get('./a')?.length).to.equal(2_000_000);
    expect(pair.nearCluster.suspected).to.deep.equal([owner.id]);
  });

  it('are tried again where it dies before anything was sent of a body', async () => {
    await using pair = await ApiPair.open();
    let count = 0;
    await using dying = await ScriptedOwner.open((socket) => {
      count += 1;
      // The second time its port is closed.
      if (count === 2) pair.nearCluster.suspect(owner.id);
      socket.resetAndDestroy();
    });
    const { id, owner } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' });
    expect(answer.status, answer.text).to.equal(200);
    expect(count).to.equal(2);
  });

  it('are given up after three tries', async () => {
    await using pair = await ApiPair.open();
    await using dying = await ScriptedOwner.open((socket) => socket.resetAndDestroy());
    const { id } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('DELETE', `/runners/${id}`);
    expect(answer.status).to.equal(503);
    expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
    expect(dying.sockets).to.have.length(3);
  });

  it('are not tried again once the body was sent', async () => {
    await using pair = await ApiPair.open();
    await using dying = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.once('data', () => socket.resetAndDestroy());
    });
    const { id } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' });
    expect(answer.status).to.equal(503);
    expect(answer.text).to.include('may or may not');
    expect(dying.sockets).to.have.length(1);
  });

  it('are cut where the answer breaks off, and never look whole', async () => {
    await using pair = await ApiPair.open();
    for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
      await using dying = await ScriptedOwner.open((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n${framing}\r\n\r\n`);
        socket.write(framing.includes('chunked') ? '5\r\nhello\r\n' : 'hello', () => socket.end());
      });
      const { id } = await placeAt(pair, dying.url);
      const sent = request(`${pair.near.base}/runners/${id}/files/raw?path=a`, { agent: false }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      const error = await response.toArray().catch((reason: unknown) => reason);
      expect(error, framing).to.be.instanceOf(Error);
      expect(response.complete).to.equal(false);
    }
  });

  it('are answered with 503 within 5 s where it hangs, on each bounded route and for each body', async function () {
    this.timeout(20_000);
    await using pair = await ApiPair.open();
    await using hanging = await ScriptedOwner.open(() => undefined);
    const { id } = await placeAt(pair, hanging.url);
    const url = `${pair.near.base}/runners/${id}`;
    const asked = performance.now();
    const statuses = await Promise.all([
      pair.near.send('DELETE', `/runners/${id}`).then(({ status }) => status),
      pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' }).then(({ status }) => status),
      pair.near.send('PATCH', `/runners/${id}/files`, { delete: ['a'] }).then(({ status }) => status),
      upgradeStatus(`${url.replace('http', 'ws')}/session`, { protocols: ['serai.v1'] }),
    ]);
    expect(statuses).to.deep.equal([503, 503, 503, 503]);
    expect(performance.now() - asked).to.be.lessThan(5000);
    expect(pair.nearCluster.listeners).to.equal(0);
    await eventually('the connections to it to be closed', () =>
      hanging.sockets.every((socket) => socket.destroyed || socket.readableEnded),
    );
  });

  it('find another owner where the one that hangs is found dead', async function () {
    this.timeout(20_000);
    await using pair = await ApiPair.open();
    await using hanging = await ScriptedOwner.open((socket) => {
      socket.pause();
      pair.nearCluster.remove(owner.id);
    });
    const { id, owner } = await placeAt(pair, hanging.url);
    pair.near.files.contents.set('a', Buffer.from('here'));
    const answer = await pair.near.send('GET', `/runners/${id}/files/raw?path=a`);
    expect([answer.status, answer.text]).to.deep.equal([200, 'here']);
  });

  it('leave no body behind where a client leaves in the middle of it', async () => {
    await using pair = await ApiPair.open();
    await using taking = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.resume();
    });
    const { id } = await placeAt(pair, taking.url);
    const sent = request(`${pair.near.base}/runners/${id}/files`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', 'content-length': '1000000' },
      agent: false,
    });
    sent.on('error', () => undefined);
    sent.write('{"delete":["');
    await eventually('the owner to be asked', () => taking.sockets.length === 1);
    sent.destroy();
    await eventually('the owner to be left', () => taking.sockets.every((socket) => socket.closed));
  });

  it('hold a client back that sends faster than the owner takes', async () => {
    await using pair = await ApiPair.open();
    await using slow = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.pause();
    });
    const { id } = await placeAt(pair, slow.url);
    const sent = request(`${pair.near.base}/runners/${id}/files`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      agent: false,
    });
    sent.on('error', () => undefined);
    const chunk = Buffer.alloc(1_000_000, 'a');
    let taken = 0;
    const goesOn = (): Promise<boolean> =>
      new Promise((resolve) => {
        const stuck = setTimeout(() => resolve(false), 300);
        sent.write(chunk, () => {
          clearTimeout(stuck);
          resolve(true);
        });
      });
    while (taken < 60 && (await goesOn())) taken += 1;
    expect(taken).to.be.lessThan(40);
    sent.destroy();
  });
});
