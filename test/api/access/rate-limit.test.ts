import { expect } from 'chai';
import { FakeClock } from '../../support/fake-clock.js';
import type { Answer, TestApiOptions } from '../../support/test-api.js';
import { TestApi } from '../../support/test-api.js';
import { SocketClient, UpgradeRefused } from '../../support/websocket-client.js';

const RATE = { SERAI_AUTH_RATE_LIMIT_REQUESTS_PER_SECOND: '2', SERAI_AUTH_RATE_LIMIT_BURST: '3' };

const TOKENS = [
  { name: 'a', token: 'for-a', scopes: ['runners'] },
  { name: 'slow', token: 'for-slow', scopes: ['runners', 'read'], requestsPerSecond: 0.1, burst: 1 },
  { name: 'free', token: 'for-free', scopes: ['read'], requestsPerSecond: 0 },
];

describe('the rate limit', () => {
  let clock: FakeClock;
  let api: TestApi;

  async function open(settings: TestApiOptions['settings'] = {}): Promise<void> {
    clock = new FakeClock();
    api = await TestApi.open({ clock, settings: { SERAI_AUTH_TOKENS: JSON.stringify(TOKENS), ...settings } });
  }

  afterEach(() => api.server.destroy());

  const ask = (token: string, path = '/version'): Promise<Answer> =>
    api.send('GET', path, undefined, { 'poseidon-token': token });

  async function statuses(count: number, token: string, path?: string): Promise<number[]> {
    const answers: number[] = [];
    for (let sent = 0; sent < count; sent += 1) answers.push((await ask(token, path)).status);
    return answers;
  }

  it('lets a burst of each token pass, then answers 429 until its time has come', async () => {
    await open(RATE);
    expect(await statuses(5, 'for-a')).to.deep.equal([200, 200, 200, 429, 429]);
    expect(await statuses(2, 'for-slow'), 'another token, with limits of its own').to.deep.equal([200, 429]);
    expect(await statuses(9, 'for-free')).to.deep.equal(Array(9).fill(200));
    const refused = await ask('for-slow');
    expect(refused.json).to.deep.equal({
      message: 'more requests of the token slow than auth.rateLimit allows',
    });
    expect(Number(refused.headers.get('retry-after'))).to.be.within(10, 15);
    await clock.advance(500);
    expect(await statuses(2, 'for-a')).to.deep.equal([200, 429]);
    await clock.advance(9500);
    expect(await statuses(2, 'for-slow')).to.deep.equal([200, 429]);
  });

  it('counts whatever a token asks for, but neither health checks nor wrong tokens', async () => {
    await open(RATE);
    expect(await statuses(20, 'for-a', '/health')).to.deep.equal(Array(20).fill(204));
    expect(await statuses(20, 'wrong')).to.deep.equal(Array(20).fill(401));
    expect(await statuses(4, 'for-a', '/no-such-route')).to.deep.equal([404, 404, 404, 429]);
  });

  it('counts WebSockets too, and takes no execution from one that has to wait', async () => {
    await open({ ...RATE, SERAI_AUTH_TOKEN: 'default' });
    const { url } = await api.prepare();
    await ask('default');
    const refusal: unknown = await SocketClient.open(url, { headers: { 'poseidon-token': 'default' } }).catch(
      (error: unknown) => error,
    );
    expect(refusal).to.be.instanceOf(UpgradeRefused).with.property('status', 429);
    expect(api.executions.taken.size).to.equal(0);
  });

  it('holds for all together where there are no tokens, with a burst of one second', async () => {
    await open({ SERAI_AUTH_TOKENS: '', SERAI_AUTH_RATE_LIMIT_REQUESTS_PER_SECOND: '1.5' });
    expect(await statuses(3, '')).to.deep.equal([200, 200, 429]);
  });

  it('names the token in the log, and is the 500 that older clients know where they are served', async () => {
    await open({ ...RATE, SERAI_API_PEER_STATUSES: 'true' });
    expect(await statuses(2, 'for-slow')).to.deep.equal([200, 500]);
    const line = api.log.lines.find(({ fields }) => fields['code'] === 'RATE_LIMITED');
    expect(line?.fields).to.include({ tokenName: 'slow', status: 500 });
  });

  it('is none where none is set', async () => {
    await open();
    expect(await statuses(50, 'for-a')).to.deep.equal(Array(50).fill(200));
  });
});
