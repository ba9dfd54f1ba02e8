import { connect } from 'node:net';
import { expect } from 'chai';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';
import { SocketClient, UpgradeRefused } from '../../support/websocket-client.js';

async function refusalOf(url: string): Promise<UpgradeRefused> {
  try {
    await SocketClient.open(url);
  } catch (error) {
    if (error instanceof UpgradeRefused) return error;
    throw error;
  }
  throw new Error('the socket opened');
}

describe('upgrades', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open();
  });

  afterEach(() => api.server.stop());

  it('are answered in plain HTTP with a JSON body where they are refused', async () => {
    const { url, runnerId } = await api.prepare();
    const root = `${api.base.replace('http', 'ws')}/runners`;
    const refused: readonly (readonly [string, number])[] = [
      [`${root}/none/websocket?executionID=execution-1`, 410],
      [`${root}/%E0%A4%A/websocket?executionID=execution-1`, 400],
      [`${root}/${runnerId}/websocket?executionID=unknown`, 404],
      [`${root}/${runnerId}/websocket`, 400],
      [`${root}/${runnerId}/websocket?executionID=`, 400],
      [`${url}&executionID=2`, 400],
      [`${url}&from=2`, 400],
      [`${root}/${runnerId}/other?executionID=execution-1`, 404],
      [`${root}/${runnerId}`, 404],
    ];
    for (const [address, status] of refused) {
      const refusal = await refusalOf(address);
      expect(refusal.status, address).to.equal(status);
      expect(JSON.parse(refusal.body), address).to.have.property('message');
      expect(refusal.headers['content-type']).to.match(/^application\/json/);
    }
    expect(api.executions.taken.size).to.equal(0);
    const client = await SocketClient.open(url);
    client.socket.terminate();
  });

  it('answer 503 with Retry-After while the service is not ready', async () => {
    const { url } = await api.prepare();
    api.runners.ready = false;
    const refusal = await refusalOf(url);
    expect(refusal.status).to.equal(503);
    expect(refusal.headers['retry-after']).to.match(/^\d+$/);
  });

  it('give an execution to one of two sockets, and 409 to the other [B12]', async () => {
    const { url } = await api.prepare();
    const outcomes = await Promise.allSettled([SocketClient.open(url), SocketClient.open(url)]);
    const served = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(served).to.have.length(1);
    expect(refused.map(({ reason }) => (reason as UpgradeRefused).status)).to.deep.equal([409]);
    expect((await refusalOf(url)).status).to.equal(409);
    served[0]?.value.socket.terminate();
  });

  it('take no execution where the handshake is not sound', async () => {
    const { url } = await api.prepare();
    const { port, pathname, search } = new URL(url);
    const heads = [
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n',
      'Sec-WebSocket-Version: 13\r\n',
      'Sec-WebSocket-Version: 7\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: a,,b\r\n',
    ];
    for (const head of heads) {
      const answer = await exchange(
        Number(port),
        `GET ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${head}\r\n`,
      );
      expect(answer).to.match(/^HTTP\/1\.1 400 [^]*\{"message":/);
    }
    expect(api.executions.taken.size).to.equal(0);
  });

  it('leave no connection behind when refused', async () => {
    const { url } = await api.prepare();
    await refusalOf(`${url}x`);
    await eventually('the connections to end', () => api.server.connections === 0);
  });

  it('do not compress, and choose no subprotocol', async () => {
    const { url } = await api.prepare();
    const client = await SocketClient.open(url);
    expect(client.socket.extensions).to.equal('');
    expect(client.socket.protocol).to.equal('');
    client.socket.terminate();
  });

  it('write their line to the log as a request', async () => {
    const { url } = await api.prepare();
    const client = await SocketClient.open(url);
    await refusalOf(url);
    client.socket.terminate();
    await eventually('two lines', () => {
      const lines = api.log.lines.filter(({ fields }) => fields['route'] === '/api/v1/runners/:id/websocket');
      return lines.map(({ fields }) => fields['status']).join() === '101,409';
    });
    expect(JSON.stringify(api.log.lines)).not.to.contain('execution-1');
  });

  it('to other protocols are read as ordinary requests, on one connection, bodies included', async () => {
    const body = '{"executionEnvironmentId":1}';
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const head = `POST /api/v1/runners HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${offer}`;
    const request = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    const socket = connect(Number(new URL(api.base).port), '127.0.0.1');
    let answers = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answers += text));
    for (let count = 1; count <= 20; count += 1) {
      // The body comes apart from its head every other time.
      socket.write(count % 2 ? request : request.slice(0, -10));
      if (count % 2 === 0) setImmediate(() => socket.write(request.slice(-10)));
      await eventually(`answer ${count}`, () => answers.split('HTTP/1.1 200 OK').length === count + 1);
    }
    expect(api.server.connections).to.equal(1);
    socket.destroy();
  });
});

/** Writes one request and resolves with all that comes until the server closes. */
function exchange(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
  });
}
