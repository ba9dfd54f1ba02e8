import { request as httpRequest } from 'node:http';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { TestApi } from '../support/test-api.js';

/** Every route, one request each. */
const ROUTES: readonly (readonly [string, string])[] = [
  ['GET', '/version'],
  ['GET', '/statistics/execution-environments'],
  ['GET', '/execution-environments'],
  ['GET', '/execution-environments/1'],
  ['PUT', '/execution-environments/1'],
  ['DELETE', '/execution-environments/1'],
  ['POST', '/runners'],
  ['DELETE', '/runners/x'],
  ['POST', '/runners/x/execute'],
  ['GET', '/runners/x/websocket'],
  ['GET', '/no-such-route'],
  ['PATCH', '/version'],
];

/** The status that an upgrade without a usable token is answered with. */
function upgradeStatus(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers });
    socket.once('unexpected-response', (_req, res) => {
      res.resume();
      resolve(res.statusCode);
    });
    socket.once('open', () => reject(new Error('the socket opened')));
    socket.on('error', () => undefined);
  });
}

/** Sends headers that fetch does not let a program set. */
function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers: { connection: 'close', ...headers } }, (res) => {
      res.resume();
      resolve(res.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

describe('authentication', () => {
  const token = 'let-me-in';

  it('answers 401 on every route but /health without the token or with a wrong one [A4-84]', async () => {
    await using api = await TestApi.open({ settings: { SERAI_AUTH_TOKEN: token } });
    for (const [method, path] of ROUTES) {
      for (const given of ['', 'wrong', `${token}x`, token.toUpperCase()]) {
        const answer = await api.send(method, path, undefined, { 'poseidon-token': given });
        expect(answer.status, `${method} ${path} with ${JSON.stringify(given)}`).to.equal(401);
        expect(answer.json).to.have.all.keys('message');
      }
    }
    const health = await api.send('GET', '/health', undefined, { 'poseidon-token': '' });
    expect(health.status).to.equal(204);
  });

  it('lets the right token pass', async () => {
    await using api = await TestApi.open({ settings: { SERAI_AUTH_TOKEN: token } });
    expect((await api.send('GET', '/version')).status).to.equal(200);
    expect((await api.send('GET', '/no-such-route')).status).to.equal(404);
  });

  it('answers 401 to upgrades too, before anything else is told [A4-84]', async () => {
    await using api = await TestApi.open({ settings: { SERAI_AUTH_TOKEN: token } });
    const { url } = await api.prepare();
    for (const headers of [{}, { 'poseidon-token': 'wrong' }]) {
      expect(await upgradeStatus(url, headers)).to.equal(401);
      expect(await upgradeStatus(`${api.base.replace('http', 'ws')}/elsewhere`, headers)).to.equal(401);
    }
    expect(api.executions.taken.size).to.equal(0);
  });

  it('writes no token to the log [B16]', async () => {
    await using api = await TestApi.open({ settings: { SERAI_AUTH_TOKEN: token } });
    await api.send('GET', '/version', undefined, { 'poseidon-token': 'a-wrong-one' });
    await api.send('GET', '/version');
    expect(api.log.lines.length).to.be.greaterThan(0);
    expect(JSON.stringify(api.log.lines)).not.to.match(/a-wrong-one|let-me-in/);
  });

  describe('without a token', () => {
    it('refuses what a web page of another origin sends', async () => {
      await using api = await TestApi.open();
      const url = `${api.base}/version`;
      const { host } = new URL(url);
      expect(await statusOf(url, {})).to.equal(200);
      expect(await statusOf(url, { host: 'localhost:7200' })).to.equal(200);
      expect(await statusOf(url, { origin: `http://${host}` })).to.equal(200);
      expect(await statusOf(url, { origin: 'https://evil.example' })).to.equal(401);
      expect(await statusOf(url, { origin: 'null' })).to.equal(401);
      const { url: socketUrl } = await api.prepare();
      expect(await upgradeStatus(socketUrl, { origin: 'https://evil.example' })).to.equal(401);
    });

    it('refuses a name that was made to resolve to this machine', async () => {
      await using api = await TestApi.open();
      for (const host of ['evil.example', 'evil.example:7200', '127.0.0.1.evil.example', '%%']) {
        expect(await statusOf(`${api.base}/version`, { host }), host).to.equal(401);
      }
    });

    it('serves everybody when anonymous use is allowed', async () => {
      await using api = await TestApi.open({ settings: { SERAI_AUTH_ALLOW_ANONYMOUS: 'true' } });
      const headers = { host: 'serai.example', origin: 'https://elsewhere.example' };
      expect(await statusOf(`${api.base}/version`, headers)).to.equal(200);
    });
  });
});
