import { request } from 'node:http';
import { expect } from 'chai';
import { tokenSubprotocol } from '../../../lib/protocol/subprotocols.js';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';

/** Sends a handshake and resolves with the answer to it. */
function handshake(
  url: string,
  headers: Record<string, string>,
): Promise<{ status: number | undefined; protocol: string | undefined; head: string }> {
  return new Promise((resolve, reject) => {
    const handshakeHeaders = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    request(url.replace('ws', 'http'), { headers: { ...handshakeHeaders, ...headers } })
      .on('upgrade', ({ statusCode, headers: answered, rawHeaders }, socket) => {
        socket.destroy();
        resolve({
          status: statusCode,
          protocol: answered['sec-websocket-protocol'],
          head: rawHeaders.join('\n'),
        });
      })
      .on('response', (res) => {
        res.resume();
        resolve({ status: res.statusCode, protocol: undefined, head: res.rawHeaders.join('\n') });
      })
      .on('error', reject)
      .end();
  });
}

describe('upgrades with a token', () => {
  const token = 'let/me+in';
  const settings = {
    SERAI_AUTH_TOKEN: token,
    SERAI_AUTH_TOKENS: JSON.stringify([{ name: 'reader', token: 'for-reading', scopes: ['read'] }]),
  };
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open({ settings });
  });

  afterEach(() => api.server.destroy());

  const offers: readonly Record<string, string>[] = [
    { 'poseidon-token': token },
    { authorization: `Bearer ${token}` },
    { 'sec-websocket-protocol': tokenSubprotocol(token) },
    { 'sec-websocket-protocol': `mqtt, ${tokenSubprotocol(token)}` },
  ];
  for (const headers of offers) {
    it(`are served with ${Object.keys(headers).join()}: ${Object.values(headers).join()}`, async () => {
      const { url } = await api.prepare();
      const { status, protocol, head } = await handshake(url, headers);
      expect(status).to.equal(101);
      expect(protocol).to.equal(undefined);
      expect(head).not.to.contain(token).and.not.to.contain(tokenSubprotocol(token));
      await eventually('the hang-up', () => api.executions.last.hungUp === 1);
    });
  }

  it('answer 403 without the scope of runners, and take no execution', async () => {
    const { url } = await api.prepare();
    for (const headers of [
      { 'poseidon-token': 'for-reading' },
      { 'sec-websocket-protocol': tokenSubprotocol('for-reading') },
    ]) {
      expect((await handshake(url, headers)).status).to.equal(403);
    }
    expect(api.executions.taken.size).to.equal(0);
  });

  it('never choose the subprotocol with the token', async () => {
    const { url } = await api.prepare();
    const { status, protocol, head } = await handshake(url, {
      'sec-websocket-protocol': `${tokenSubprotocol(token)}, serai.v1`,
    });
    expect([status, protocol]).to.deep.equal([101, 'serai.v1']);
    expect(head).not.to.contain('bearer.');
  });
});
