import { request as httpRequest } from 'node:http';
import { expect } from 'chai';
import { TestApi } from '../../support/test-api.js';
import { upgradeStatus } from '../../support/upgrade-status.js';

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

describe('access without a token', () => {
  it('is refused to what a web page of another origin sends', async () => {
    await using api = await TestApi.open();
    const url = `${api.base}/version`;
    const { host } = new URL(url);
    expect(await statusOf(url, {})).to.equal(200);
    expect(await statusOf(url, { host: 'localhost:7200' })).to.equal(200);
    expect(await statusOf(url, { origin: `http://${host}` })).to.equal(200);
    expect(await statusOf(url, { origin: 'https://evil.example' })).to.equal(401);
    expect(await statusOf(url, { origin: 'null' })).to.equal(401);
    const { url: socketUrl } = await api.prepare();
    expect(await upgradeStatus(socketUrl, { headers: { origin: 'https://evil.example' } })).to.equal(401);
  });

  it('is refused to a name that was made to resolve to this machine', async () => {
    await using api = await TestApi.open();
    for (const host of ['evil.example', 'evil.example:7200', '127.0.0.1.evil.example', '%%']) {
      expect(await statusOf(`${api.base}/version`, { host }), host).to.equal(401);
    }
  });

  it('is refused to other machines that come through a proxy of this one', async () => {
    await using api = await TestApi.open();
    const url = `${api.base}/version`;
    const foreign: readonly Record<string, string>[] = [
      { 'x-forwarded-for': '192.0.2.1' },
      { 'x-forwarded-for': '127.0.0.1, 192.0.2.1' },
      { 'x-real-ip': '2001:db8::1' },
      { forwarded: 'for="[2001:db8::1]:80";proto=https, for=127.0.0.1' },
      { forwarded: 'proto=https;for=unknown' },
    ];
    for (const headers of foreign) {
      expect(await statusOf(url, headers), JSON.stringify(headers)).to.equal(401);
    }
    const own: readonly Record<string, string>[] = [
      { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '::1' },
      { 'x-forwarded-proto': 'https' },
      { forwarded: 'for="[::1]:4711";host=localhost' },
    ];
    for (const headers of own) expect(await statusOf(url, headers), JSON.stringify(headers)).to.equal(200);
  });

  it('is given to everybody when anonymous use is allowed', async () => {
    await using api = await TestApi.open({ settings: { SERAI_AUTH_ALLOW_ANONYMOUS: 'true' } });
    const headers = {
      host: 'serai.example',
      origin: 'https://elsewhere.example',
      'x-forwarded-for': '192.0.2.1',
    };
    expect(await statusOf(`${api.base}/version`, headers)).to.equal(200);
  });
});
