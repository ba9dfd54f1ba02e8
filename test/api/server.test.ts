import { connect } from 'node:net';
import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { TestApi } from '../support/test-api.js';
import { ApiPair } from '../support/api-pair.js';
import { upgradeStatus } from '../support/upgrade-status.js';
import { eventually, gate } from '../support/waiting.js';
import { SocketClient } from '../support/websocket-client.js';

/** What keeps the process alive, by kind. */
function alive(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Sends text on a new connection and resolves with all that comes until the server closes it. */
function converse(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
  });
}

describe('ApiServer', () => {
  it('listens on the address it is given and tells where', async () => {
    await using api = await TestApi.open();
    expect(api.server.url).to.match(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(api.server.state).to.equal('running');
  });

  it('rejects, and is stopped, where it cannot listen', async () => {
    await using first = await TestApi.open();
    const { port } = new URL(first.server.url);
    let failure: unknown;
    await TestApi.open({ settings: { SERAI_SERVER_PORT: port } }).catch(
      (error: unknown) => (failure = error),
    );
    expect(failure).to.be.instanceOf(ServiceError).with.property('code', 'INVALID_CONFIG');
    expect((failure as Error).message).to.contain(`127.0.0.1:${port}`);
  });

  it('answers what is no HTTP in JSON, and closes', async () => {
    await using api = await TestApi.open();
    const port = Number(new URL(api.server.url).port);
    expect(await converse(port, 'nonsense\r\n\r\n')).to.match(
      /^HTTP\/1\.1 400 Bad Request\r\n[^]*\{"message":/,
    );
    const long = `GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`;
    expect(await converse(port, long)).to.match(/^HTTP\/1\.1 431 [^]*\{"message":/);
    await eventually('the connections to end', () => api.server.connections === 0);
  });

  it('answers an address that is no URL, or a query that is no UTF-8, in JSON', async () => {
    await using api = await TestApi.open();
    const port = Number(new URL(api.server.url).port);
    for (const target of ['http://[::1/api/v1/version', '/api/v1/execution-environments?fetch=%ff']) {
      const request = `GET ${target} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`;
      expect(await converse(port, request), target).to.match(/^HTTP\/1\.1 400 [^]*\{"message":/);
    }
  });

  describe('stop', () => {
    it('lets requests in flight finish, refuses new ones, and closes idle connections', async () => {
      const api = await TestApi.open({ graceMs: 60_000 });
      const port = Number(new URL(api.server.url).port);
      const claiming = gate();
      api.runners.claimGate = claiming.promise;
      const idle = connect(port, '127.0.0.1');
      let idleEnded = false;
      idle.on('close', () => (idleEnded = true)).resume();
      const pending = api.send(
        'POST',
        '/runners',
        { executionEnvironmentId: 1 },
        { connection: 'keep-alive' },
      );
      await eventually('the claim to begin', () => api.runners.calls.length === 1);
      const stopping = api.server.stop();
      expect(api.server.stop()).to.equal(stopping);
      await eventually('the idle connection to end', () => idleEnded);
      await converse(port, 'GET /api/v1/health HTTP/1.0\r\n\r\n').then(
        () => expect.fail('a new connection was taken'),
        (error: NodeJS.ErrnoException) => expect(error.code).to.equal('ECONNREFUSED'),
      );
      expect(api.server.state).to.equal('stopping');
      claiming.open();
      expect((await pending).status).to.equal(200);
      await stopping;
      expect(api.server.state).to.equal('stopped');
    });

    it('answers 503 to requests that come on open connections', async () => {
      const api = await TestApi.open({ graceMs: 60_000 });
      const claiming = gate();
      api.runners.claimGate = claiming.promise;
      const body = '{"executionEnvironmentId":1}';
      const post = `POST /api/v1/runners HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const socket = connect(Number(new URL(api.server.url).port), '127.0.0.1');
      let answers = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => (answers += chunk));
      socket.write(post);
      await eventually('the claim to begin', () => api.runners.calls.length === 1);
      const stopping = api.server.stop();
      socket.write(post);
      await eventually('the second request to arrive', () =>
        api.log.lines.some(({ message }) => message === 'request refused'),
      );
      claiming.open();
      await stopping;
      await eventually('both answers', () => answers.includes('HTTP/1.1 503 '));
      expect(answers).to.match(/^HTTP\/1\.1 200 OK[^]*HTTP\/1\.1 503 [^]*Connection: close/);
    });

    it('listens among replicas until what runs has ended, and answers 503 to all that is new', async () => {
      await using pair = await ApiPair.open({ graceMs: 60_000 });
      const { far, near } = pair;
      const port = Number(new URL(far.server.url).port);
      const runnerId = await pair.claim();
      const running = await SocketClient.open(await far.prepareOn(runnerId));
      await far.executions.last.running;
      await near.send('GET', `/runners/${runnerId}/files`); // leaves a connection that is kept
      const draining = far.server.drain();
      const isClosed = far.server.stop();
      for (const [api, method, path] of [
        [far, 'GET', '/health'],
        [far, 'DELETE', `/runners/${runnerId}`],
        [near, 'GET', `/runners/${runnerId}/files`],
        [near, 'POST', `/runners/${runnerId}/execute`],
        [near, 'PATCH', `/runners/${runnerId}/files`],
      ] as const) {
        const body = method === 'POST' ? { command: 'true' } : method === 'PATCH' ? {} : undefined;
        const { status, headers } = await api.send(method, path, body, { connection: 'keep-alive' });
        expect(status, path).to.equal(503);
        expect(Number(headers.get('retry-after')), path).to.be.greaterThan(0);
        if (api === far) expect(headers.get('connection')).to.equal('close');
      }
      for (const { base } of [far, near]) {
        const url = `${base.replace('http', 'ws')}/runners/${runnerId}/session`;
        expect(await upgradeStatus(url, { protocols: ['serai.v1'] })).to.equal(503);
      }
      expect(pair.nearCluster.suspected).to.deep.equal([]);
      far.executions.last.end({ kind: 'exited', exitCode: 7 });
      await draining;
      expect(running.messages.at(-1)).to.deep.equal({ type: 'exit', data: 7 });
      await isClosed;
      await converse(port, 'GET /api/v1/health HTTP/1.0\r\n\r\n').then(
        () => expect.fail('a new connection was taken'),
        (error: NodeJS.ErrnoException) => expect(error.code).to.equal('ECONNREFUSED'),
      );
    });

    it('waits for running executions, which end as usual', async () => {
      const api = await TestApi.open({ graceMs: 60_000 });
      const { url } = await api.prepare();
      const client = await SocketClient.open(url);
      const stopping = api.server.stop();
      await settle();
      expect(api.server.state).to.equal('stopping');
      api.executions.last.end({ kind: 'exited', exitCode: 7 });
      await stopping;
      expect(client.messages.at(-1)).to.deep.equal({ type: 'exit', data: 7 });
      expect(await client.closed()).to.equal(1000);
    });

    it('cuts executions at the deadline, tells their clients, and ends their programs', async () => {
      const clock = new FakeClock();
      const api = await TestApi.open({ graceMs: 5000, clock });
      const { url } = await api.prepare();
      const client = await SocketClient.open(url);
      const stopping = api.server.stop();
      await clock.advance(4999);
      expect(api.executions.last.hungUp).to.equal(0);
      await clock.advance(1);
      await stopping;
      expect(await client.closed()).to.equal(1000);
      expect(client.messages.at(-1)).to.deep.equal({ type: 'error', data: 'the service is stopping' });
      expect(api.executions.last.hungUp).to.equal(1);
      expect(clock.armed).to.equal(0);
    });

    it('does not wait for clients that neither read nor close', async () => {
      const clock = new FakeClock();
      const api = await TestApi.open({ graceMs: 5000, clock });
      const { url } = await api.prepare();
      const client = await SocketClient.open(url);
      client.socket.pause();
      while (api.executions.last.sink.output('stdout', 'x'.repeat(100_000)));
      const stopping = api.server.stop();
      await clock.advance(5000);
      await clock.advance(1000);
      await stopping;
      expect(api.server.connections).to.equal(0);
      expect(clock.armed).to.equal(0);
      client.socket.terminate();
    });

    it('becomes a cut when it is destroyed meanwhile', async () => {
      const api = await TestApi.open({ graceMs: 3_600_000 });
      const { url } = await api.prepare();
      const client = await SocketClient.open(url);
      const stopping = api.server.stop();
      await api.server.destroy();
      await stopping;
      await client.closed();
      expect(api.executions.last.hungUp).to.equal(1);
    });

    it('leaves nothing behind', async () => {
      const before = alive();
      const api = await TestApi.open({ graceMs: 10 });
      const { url } = await api.prepare();
      const client = await SocketClient.open(url);
      await api.send('GET', '/version', undefined, { connection: 'keep-alive' });
      await api.server.stop();
      await client.closed();
      await eventually('the same resources as before', () => {
        const now = alive();
        return ['TCPServerWrap', 'TCPSocketWrap', 'Timeout'].every(
          (name) => (now[name] ?? 0) <= Math.max(before[name] ?? 0, name === 'Timeout' ? 1 : 0),
        );
      });
      await api.server.start().then(
        () => expect.fail('it started again'),
        (error: unknown) => expect(error).to.have.property('code', 'ILLEGAL_STATE'),
      );
    });

    it('of one that never started does nothing', async () => {
      const api = TestApi.create();
      await api.server.stop();
      await api.server.stop();
      expect(api.server.state).to.equal('stopped');
    });
  });
});
