import { expect } from 'chai';
import { Authenticator } from '../../../lib/api/access/authenticator.js';
import { createApp } from '../../../lib/api/app.js';
import { API_BASE } from '../../../lib/protocol/http.js';
import { tokenSubprotocol } from '../../../lib/protocol/subprotocols.js';
import { TestApi } from '../../support/test-api.js';
import { upgradeStatus } from '../../support/upgrade-status.js';

interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Every path that the app has a route for, asked of the app itself, with something for each parameter. */
function pathsOf({ deps }: TestApi): string[] {
  return createApp(deps, new Authenticator(deps)).router.stack.flatMap(({ route }) =>
    route ? [route.path.replace(/:\w+/g, '1')] : [],
  );
}

const TOKENS = [
  { name: 'claims', token: 'token-for-runners', scopes: ['runners'] },
  { name: 'shapes', token: 'token-for-environments', scopes: ['environments'] },
  { name: 'control', token: 'token-for-control', scopes: ['control'] },
  { name: 'watches', token: 'token-for-reading', scopes: ['read'] },
];
const SCOPED = { SERAI_AUTH_TOKENS: JSON.stringify(TOKENS) };

describe('routes', () => {
  const token = 'let-me-in';
  const settings = { SERAI_AUTH_TOKEN: token, ...SCOPED };
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open({ settings });
  });

  afterEach(() => api.server.stop());

  async function ask(method: string, path: string, given: string): Promise<Asked> {
    const response = await fetch(api.server.url + path, {
      method,
      headers: { connection: 'close', 'poseidon-token': given },
      redirect: 'manual',
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  it('answer 401 in every method, save /health, without a token or with a wrong one [A4-84]', async () => {
    const paths = pathsOf(api);
    const health = `${API_BASE}/health`;
    expect(paths).to.include.members([health, `${API_BASE}/version`, `${API_BASE}/runners/1/files/raw`]);
    const wrong = ['', 'wrong', `${token}x`, token.slice(1), token.toUpperCase(), `${token}, ${token}`];
    for (const path of [...paths, '/', `${API_BASE}/no-such-route`, `${API_BASE}/HEALTH`]) {
      if (path === health) continue;
      for (const method of METHODS) {
        for (const given of wrong) {
          const answer = await ask(method, path, given);
          expect(answer.status, `${method} ${path} with ${JSON.stringify(given)}`).to.equal(401);
          expect(answer.headers.get('www-authenticate')).to.match(/^Bearer/);
          if (method !== 'HEAD') expect(JSON.parse(answer.text)).to.have.all.keys('message');
        }
      }
    }
    expect(api.runners.calls).to.deep.equal([]);
    expect((await ask('GET', health, '')).status).to.equal(204);
  });

  it('answer 401 to upgrades too, before anything else is told [A4-84]', async () => {
    const { url } = await api.prepare();
    for (const options of [
      {},
      { headers: { 'poseidon-token': 'wrong' } },
      { headers: { authorization: 'Bearer wrong' } },
      { protocols: ['serai.v1', tokenSubprotocol('wrong')] },
      { headers: { 'sec-websocket-protocol': 'no, list,' } },
    ]) {
      expect(await upgradeStatus(url, options)).to.equal(401);
      expect(await upgradeStatus(`${api.base.replace('http', 'ws')}/elsewhere`, options)).to.equal(401);
    }
    expect(api.executions.taken.size).to.equal(0);
  });

  it('write neither the right token nor a wrong one to the log, but the name of the right one [B16]', async () => {
    const wrong = 'a-wrong-one';
    const encoded = tokenSubprotocol(wrong);
    const { url } = await api.prepare();
    await api.send('GET', '/version', undefined, { 'poseidon-token': wrong });
    await api.send('GET', `/${wrong}?token=${wrong}`, undefined, {
      'poseidon-token': '',
      authorization: `Bearer ${wrong}`,
    });
    await upgradeStatus(url, { protocols: [encoded] });
    await upgradeStatus(`${url}x`, { protocols: [tokenSubprotocol(token)] });
    for (const each of TOKENS) {
      await api.send('POST', '/runners', {}, { 'poseidon-token': each.token });
    }
    const text = JSON.stringify(api.log.lines);
    for (const secret of [
      wrong,
      encoded,
      token,
      tokenSubprotocol(token),
      ...TOKENS.map((each) => each.token),
    ]) {
      expect(text).not.to.contain(secret);
    }
    const names = api.log.lines.flatMap(({ fields }) => fields['tokenName'] ?? []);
    expect(new Set(names)).to.deep.equal(new Set(['default', 'claims', 'shapes', 'control', 'watches']));
  });

  it('take a token in either header, and nothing but a whole one', async () => {
    const statusWith = async (headers: Record<string, string>): Promise<number> =>
      (await api.send('GET', '/version', undefined, { 'poseidon-token': '', ...headers })).status;
    expect(await statusWith({ 'poseidon-token': token })).to.equal(200);
    expect(await statusWith({ authorization: `Bearer ${token}` })).to.equal(200);
    expect(await statusWith({ authorization: `bearer  ${token}` })).to.equal(200);
    expect(await statusWith({ authorization: token })).to.equal(401);
    expect(await statusWith({ authorization: `Basic ${btoa(`x:${token}`)}` })).to.equal(401);
    expect(await statusWith({ authorization: 'Bearer ' })).to.equal(401);
    const both = { 'poseidon-token': 'wrong', authorization: `Bearer ${token}` };
    expect(await statusWith(both), 'the first that is there counts').to.equal(401);
    const proxied = { 'poseidon-token': token, authorization: 'Basic eDp5' };
    expect(await statusWith(proxied), 'credentials of something else').to.equal(200);
    expect(await statusWith({ 'sec-websocket-protocol': tokenSubprotocol(token) })).to.equal(401);
  });

  it('open to the scope that they declare and to no other', async () => {
    const expected: Readonly<Record<string, string>> = {
      '/version': 'any token',
      '/openapi.json': 'any token',
      '/docs': 'any token',
      '/statistics/execution-environments': 'read',
      '/execution-environments': 'environments',
      '/execution-environments/1': 'environments',
      '/runners': 'runners',
      '/runners/1': 'runners',
      '/runners/1/execute': 'runners',
      '/runners/1/websocket': 'runners',
      '/runners/1/session': 'runners',
      '/runners/1/files': 'runners',
      '/runners/1/files/raw': 'runners',
    };
    for (const path of pathsOf(api)) {
      const access = expected[path.replace(API_BASE, '')];
      if (path === `${API_BASE}/health`) continue;
      expect(access, `${path} needs a line above`).to.be.a('string');
      for (const each of TOKENS) {
        const mayPass = access === 'any token' || each.scopes.includes(String(access));
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
          const answer = await ask(method, path, each.token);
          if (answer.status === 405) continue;
          const told = `${method} ${path} by ${each.name}: ${answer.text}`;
          if (mayPass) expect(answer.status, told).not.to.be.oneOf([401, 403]);
          else expect(answer.status, told).to.equal(403);
          expect(answer.text).not.to.contain(each.token);
        }
      }
    }
  });

  it('say which scope is missing', async () => {
    const answer = await api.send('GET', '/execution-environments', undefined, {
      'poseidon-token': 'token-for-reading',
    });
    expect(answer.json).to.deep.equal({
      message: 'the token watches lacks the scope environments; it has read',
    });
  });
});
