import { expect } from 'chai';
import fc from 'fast-check';
import { TestApi } from '../../support/test-api.js';

const TOKEN = { SERAI_AUTH_TOKEN: 't' };

/** What the address of a socket is based on, for a request with these headers. */
async function baseFor(
  settings: Record<string, string>,
  ...requests: readonly Record<string, string>[]
): Promise<string[]> {
  await using api = await TestApi.open({ settings: { ...TOKEN, ...settings } });
  const { runnerId } = await api.prepare();
  const bases: string[] = [];
  for (const headers of requests) {
    const answer = await api.send('POST', `/runners/${runnerId}/execute`, { command: 'true' }, headers);
    const { websocketUrl } = answer.json as { websocketUrl: string };
    const [, base = '', rest = ''] = /^(.*?)(\/api\/v1\/runners\/.*)$/.exec(websocketUrl) ?? [];
    expect(rest).to.match(/^\/api\/v1\/runners\/[^/]+\/websocket\?executionID=/);
    bases.push(base.replace(new URL(api.base).host, 'HOST'));
  }
  return bases;
}

const LOCAL = { SERAI_SERVER_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8, 2001:db8::/32' };

describe('websocketUrl', () => {
  it('is based on server.publicUrl where that is set, whatever a request says [B17]', async () => {
    const headers = { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'elsewhere.example' };
    const based = (url: string): Promise<string[]> =>
      baseFor({ ...LOCAL, SERAI_SERVER_PUBLIC_URL: url }, {}, headers);
    expect(await based('https://serai.example')).to.deep.equal(Array(2).fill('wss://serai.example'));
    expect(await based('http://serai.example:81/')).to.deep.equal(Array(2).fill('ws://serai.example:81'));
    expect(await based('https://example.org/a/b/')).to.deep.equal(Array(2).fill('wss://example.org/a/b'));
  });

  it('is based on the address of the request where no proxy is trusted [B17]', async () => {
    const forged = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'evil.example',
      forwarded: 'proto=https;host=evil.example',
    };
    expect(await baseFor({}, {}, forged)).to.deep.equal(['ws://HOST', 'ws://HOST']);
    const others = { SERAI_SERVER_TRUSTED_PROXIES: '10.0.0.0/8,::1' };
    expect(await baseFor(others, forged)).to.deep.equal(['ws://HOST']);
  });

  it('is based on what a trusted proxy says [B17]', async () => {
    const cases: readonly (readonly [Record<string, string>, string])[] = [
      [{ 'x-forwarded-proto': 'https' }, 'wss://HOST'],
      [{ 'x-forwarded-proto': 'WSS', 'x-forwarded-host': 'a.example' }, 'wss://a.example'],
      [{ 'x-forwarded-host': 'a.example:8443' }, 'ws://a.example:8443'],
      [{ 'x-forwarded-host': '[2001:db8::1]:80' }, 'ws://[2001:db8::1]:80'],
      [{ forwarded: 'proto=https' }, 'wss://HOST'],
      [{ forwarded: 'for=1.2.3.4;Host="a.example:8443" ; proto=https' }, 'wss://a.example:8443'],
      [{ forwarded: 'for="[2001:db8::1]:4711";host=a.example' }, 'ws://a.example'],
      [{ forwarded: 'host="a\\.example"' }, 'ws://a.example'],
      // What the proxy did not write itself: the client sent the other kind of header along.
      [{ 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' }, 'wss://HOST'],
    ];
    const bases = await baseFor(LOCAL, ...cases.map(([headers]) => headers));
    expect(bases).to.deep.equal(cases.map(([, base]) => base));
  });

  it('is based on the word of the outermost of several trusted proxies, and of nobody before it', async () => {
    const cases: readonly (readonly [Record<string, string>, string])[] = [
      // client (lies) → this proxy
      [{ 'x-forwarded-for': 'x, 192.0.2.1', 'x-forwarded-host': 'lie.example, a.example' }, 'ws://a.example'],
      // client (lies) → 10.0.0.1 → this proxy
      [
        { 'x-forwarded-for': 'x, 192.0.2.1, 10.0.0.1', 'x-forwarded-host': 'lie.example, a.example, inner' },
        'ws://a.example',
      ],
      // … the inner one replaces the list
      [{ 'x-forwarded-for': '192.0.2.1, 10.0.0.1', 'x-forwarded-host': 'a.example' }, 'ws://a.example'],
      // an untrusted proxy between
      [
        { 'x-forwarded-for': '10.0.0.9, 192.0.2.1', 'x-forwarded-host': 'lie.example, b.example' },
        'ws://b.example',
      ],
      [{ forwarded: 'host=lie.example, for=192.0.2.1;host=a.example' }, 'ws://a.example'],
      [
        {
          forwarded:
            'host=lie.example, for=192.0.2.1;host=a.example;proto=https, for="10.0.0.1:80";host=inner',
        },
        'wss://a.example',
      ],
      [{ forwarded: 'for=192.0.2.1;host=a.example, for="[2001:db8::7]";host=inner' }, 'ws://a.example'],
    ];
    const bases = await baseFor(LOCAL, ...cases.map(([headers]) => headers));
    expect(bases).to.deep.equal(cases.map(([, base]) => base));
  });

  it('ignores what is no scheme, no host and no list', async () => {
    const nonsense: readonly Record<string, string>[] = [
      { 'x-forwarded-proto': 'ftp', 'x-forwarded-host': 'a/b' },
      { 'x-forwarded-host': 'user@a.example' },
      { 'x-forwarded-host': '[:::]' },
      { 'x-forwarded-host': 'a.example:65536' },
      { 'x-forwarded-host': 'a.example:port', 'x-forwarded-proto': ',' },
      { forwarded: 'host="a.example' },
      { forwarded: 'host=a.example;;=' },
      { forwarded: 'nonsense' },
    ];
    expect(await baseFor(LOCAL, ...nonsense)).to.deep.equal(nonsense.map(() => 'ws://HOST'));
  });

  it('is a WebSocket address for any header at all', async () => {
    await using api = await TestApi.open({ settings: { ...TOKEN, ...LOCAL } });
    const { runnerId } = await api.prepare();
    const value = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom('for=', 'host=', 'proto=', '"', '\\', ';', ',', '[::1]', 'a.example', ' '))
        .map((parts) => parts.join('')),
    );
    const printable = value.map((text) => text.replace(/[^\x20-\x7e]/g, ''));
    await fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            forwarded: printable,
            'x-forwarded-for': printable,
            'x-forwarded-host': printable,
            'x-forwarded-proto': printable,
          },
          { requiredKeys: [] },
        ),
        async (headers) => {
          const answer = await api.send('POST', `/runners/${runnerId}/execute`, { command: 'true' }, headers);
          const { websocketUrl } = answer.json as { websocketUrl: string };
          expect(new URL(websocketUrl).protocol).to.match(/^wss?:$/);
          expect(new URL(websocketUrl).pathname).to.equal(`/api/v1/runners/${runnerId}/websocket`);
        },
      ),
      { numRuns: 200 },
    );
  });
});
