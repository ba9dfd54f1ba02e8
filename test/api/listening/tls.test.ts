import { request } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { CertificateFolder, pem, SERVER_NAME } from '../../support/certificates.js';
import { FakeClock } from '../../support/fake-clock.js';
import { TestApi } from '../../support/test-api.js';
import { eventually, gate } from '../../support/waiting.js';
import { SocketClient } from '../../support/websocket-client.js';

const TRUST = { ca: pem('ca.pem'), servername: SERVER_NAME };

interface Reply {
  readonly status: number | undefined;
  readonly text: string;
}

/** One request that trusts the authority and the name of the server's certificate. */
function ask(url: string, method = 'GET', body = ''): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    request(url, { ...TRUST, method, headers, agent: false }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      res.on('end', () => resolve({ status: res.statusCode, text }));
    })
      .on('error', reject)
      .end(body);
  });
}

/** What the server shows to a new connection. */
function shownCertificate(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

describe('ApiServer with a certificate', () => {
  let folder: CertificateFolder;
  let api: TestApi;
  let port: number;

  async function open(options: Parameters<typeof TestApi.open>[0] = {}): Promise<void> {
    api = await TestApi.open({ ...options, settings: { ...folder.settings, ...options.settings } });
    port = Number(new URL(api.base).port);
  }

  beforeEach(() => {
    folder = new CertificateFolder();
  });

  afterEach(async () => {
    await api.server.destroy();
    folder[Symbol.dispose]();
  });

  it('serves requests and WebSockets encrypted, and says wss://', async () => {
    await open();
    expect(api.server.url).to.match(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect((await ask(`${api.base}/version`)).status).to.equal(200);
    const claim = await ask(`${api.base}/runners`, 'POST', '{"executionEnvironmentId":1}');
    const { runnerId } = JSON.parse(claim.text) as { runnerId: string };
    const prepared = await ask(`${api.base}/runners/${runnerId}/execute`, 'POST', '{"command":"true"}');
    const { websocketUrl } = JSON.parse(prepared.text) as { websocketUrl: string };
    expect(websocketUrl).to.match(new RegExp(`^wss://127\\.0\\.0\\.1:${port}/api/v1/runners/`));
    const client = await SocketClient.open(websocketUrl, TRUST);
    client.socket.send('input');
    await eventually('the input', () => api.executions.last.input.length === 1);
    api.executions.last.end({ kind: 'exited', exitCode: 3 });
    expect(await client.closed()).to.equal(1000);
    expect(client.messages.at(-1)).to.deep.equal({ type: 'exit', data: 3 });
    await eventually('the connections to end', () => api.server.connections === 0);
  });

  it('does not speak to who sends no TLS, or only says nothing', async () => {
    await open();
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /api/v1/version HTTP/1.1\r\n\r\n'));
    let answer = '';
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    await new Promise<void>((resolve) => socket.once('close', () => resolve()).on('error', () => undefined));
    expect(answer).not.to.contain('HTTP');
    await eventually('the connections to end', () => api.server.connections === 0);
    expect(api.log.lines).to.deep.equal([]);
  });

  it('shows a new certificate to new connections, while old ones go on, and none that is broken', async () => {
    const clock = new FakeClock();
    await open({ clock });
    const before = await shownCertificate(port);
    const claiming = gate();
    api.runners.claimGate = claiming.promise;
    const pending = ask(`${api.base}/runners`, 'POST', '{"executionEnvironmentId":1}');
    await eventually('the claim to begin', () => api.runners.calls.length === 1);
    folder.put('client', 'server');
    await clock.advance(10_000);
    await eventually('the look', () => clock.armed === 1);
    expect(await shownCertificate(port)).to.equal(before);
    folder.put('client', 'client');
    await clock.advance(10_000);
    await eventually('the new certificate', async () => (await shownCertificate(port)) !== before);
    claiming.open();
    expect((await pending).status).to.equal(200);
  });

  it('gives requests that offer h2c back to the encrypted side', async () => {
    await open();
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const head = `GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\n${offer}\r\n`;
    const socket = connectTls({ ...TRUST, port, host: '127.0.0.1' }, () => socket.write(head));
    let answers = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answers += text));
    await eventually('the answer', () => answers.includes('HTTP/1.1 200 OK'));
    socket.write(head);
    await eventually('the second answer', () => answers.split('HTTP/1.1 200 OK').length === 3);
    expect(api.server.connections).to.equal(1);
    socket.destroy();
  });

  it('answers what is no HTTP in JSON, encrypted', async () => {
    await open();
    const socket = connectTls({ ...TRUST, port, host: '127.0.0.1' }, () => socket.write('nonsense\r\n\r\n'));
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    await eventually('the answer', () => answer.includes('{"message":'));
    expect(answer).to.match(/^HTTP\/1\.1 400 /);
  });

  it('does not start with files that it cannot use, and is stopped then', async () => {
    folder.put('server', 'client');
    await open().then(
      () => expect.fail('it started'),
      (error: unknown) => expect(error).to.have.property('code', 'INVALID_CONFIG'),
    );
    api = TestApi.create();
  });

  it('lets requests in flight finish when it stops, but waits neither for idle nor for silent connections', async () => {
    await open({ graceMs: 3_600_000 });
    const claiming = gate();
    api.runners.claimGate = claiming.promise;
    const pending = ask(`${api.base}/runners`, 'POST', '{"executionEnvironmentId":1}');
    await eventually('the claim to begin', () => api.runners.calls.length === 1);
    const ended: string[] = [];
    const idle = connectTls({ ...TRUST, port, host: '127.0.0.1' });
    idle
      .on('close', () => ended.push('idle'))
      .on('error', () => undefined)
      .resume();
    const silent = connect(port, '127.0.0.1');
    silent
      .on('close', () => ended.push('silent'))
      .on('error', () => undefined)
      .resume();
    await eventually('three connections', () => api.server.connections === 3 && idle.authorized);
    const stopping = api.server.stop();
    await eventually('the two to end', () => ended.length === 2);
    expect(api.server.state).to.equal('stopping');
    claiming.open();
    expect((await pending).status).to.equal(200);
    await stopping;
    await eventually('the end of all', () => api.server.connections === 0);
  });

  it('leaves nothing behind', async () => {
    const clock = new FakeClock();
    await open({ clock });
    await ask(`${api.base}/version`);
    await api.server.stop();
    expect(clock.armed).to.equal(0);
    expect(api.server.state).to.equal('stopped');
  });
});
