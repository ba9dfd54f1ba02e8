import { expect } from 'chai';
import { tokenSubprotocol } from '../../../lib/protocol/subprotocols.js';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import type { SessionClient } from '../../support/session-client.js';
import type { TestApiOptions } from '../../support/test-api.js';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';
import { SocketClient, UpgradeRefused } from '../../support/websocket-client.js';

const OVER = { durationMs: 0, oomKilled: false };
const GONE = 'the runner is gone, so the command was not run';
const STOPPING = 'the service is stopping';

describe('the socket of a session', () => {
  let api: TestApi;
  let clock: FakeClock;
  let opened: SessionClient | undefined;

  beforeEach(() => {
    clock = new FakeClock();
    opened = undefined;
  });

  afterEach(async () => {
    opened?.client.socket.terminate();
    await api.server.destroy();
    expect(api.server.connections).to.equal(0);
    expect(clock.armed).to.equal(0);
    const told = api.log.lines.filter(({ level }) => level === 'warn' || level === 'error');
    expect(told).to.deep.equal([]);
  });

  async function open(options: TestApiOptions = {}): Promise<SessionClient> {
    api = await TestApi.open({ clock, ...options });
    opened = await api.openSession();
    return opened;
  }

  /** Sends one command that runs and two that wait. */
  async function execThree(session: SessionClient): Promise<FakeExecution> {
    for (const id of ['a', 'b', 'c']) session.exec(id);
    session.send({ type: 'cancel', id: 'nobody' });
    await eventually('the answer', () => session.messages.some(({ type }) => type === 'refused'));
    await api.executions.last.running;
    return api.executions.last;
  }

  const aborted = (id: string, data: string): object => ({ type: 'error', data, ...OVER, id });

  describe('opens', () => {
    async function refusal(path: string, protocols?: string[]): Promise<UpgradeRefused> {
      const url = api.base.replace('http', 'ws') + path;
      try {
        const client = await SocketClient.open(url, protocols ? { protocols } : {});
        client.socket.terminate();
      } catch (error) {
        if (error instanceof UpgradeRefused) return error;
        throw error;
      }
      throw new Error('the socket opened');
    }

    it('for serai.v1 only, and says so', async () => {
      const session = await open();
      expect(session.client.socket.protocol).to.equal('serai.v1');
      expect(session.client.socket.extensions).to.equal('');
      const path = `/runners/${session.runnerId}/session`;
      for (const protocols of [undefined, ['other'], [tokenSubprotocol('token')]]) {
        const { status, body } = await refusal(path, protocols);
        expect([status, JSON.parse(body)]).to.deep.equal([
          400,
          { message: 'a session takes the subprotocol serai.v1; offer it in Sec-WebSocket-Protocol' },
        ]);
      }
      expect((await refusal(`${path}?executionID=1`, ['serai.v1'])).status).to.equal(400);
      expect((await refusal('/runners/none/session', ['serai.v1'])).status).to.equal(410);
      api.runners.ready = false;
      expect((await refusal(path, ['serai.v1'])).status).to.equal(503);
    });

    it('with a token that has the scope, in a header or as a subprotocol', async () => {
      const tokens = [{ name: 'reader', token: 'for-reading', scopes: ['read'] }];
      const settings = { SERAI_AUTH_TOKEN: 'let-me-in', SERAI_AUTH_TOKENS: JSON.stringify(tokens) };
      api = await TestApi.open({ clock, settings });
      const protocols = ['serai.v1', tokenSubprotocol('let-me-in')];
      const session = await api.openSession({ protocols });
      opened = session;
      expect(session.client.socket.protocol).to.equal('serai.v1');
      const path = `/runners/${session.runnerId}/session`;
      expect((await refusal(path, ['serai.v1'])).status).to.equal(401);
      expect((await refusal(path, ['serai.v1', tokenSubprotocol('for-reading')])).status).to.equal(403);
    });

    it('with one line in the log, which names no runner', async () => {
      const session = await open();
      const lines = api.log.lines.filter(({ fields }) => fields['route'] === '/api/v1/runners/:id/session');
      expect(lines.map(({ fields }) => fields['status'])).to.deep.equal([101]);
      expect(JSON.stringify(lines)).not.to.contain(session.runnerId);
    });
  });

  it('counts each command against the rate limit of its token', async () => {
    const session = await open({
      settings: { SERAI_AUTH_RATE_LIMIT_REQUESTS_PER_SECOND: '1', SERAI_AUTH_RATE_LIMIT_BURST: '4' },
    });
    for (const id of ['a', 'b', 'c']) session.exec(id);
    expect(await session.end('c'))
      .to.have.property('data')
      .that.contains('auth.rateLimit');
    expect(session.ended).to.deep.equal(['c']);
  });

  for (const [way, leave] of [
    ['closes', ({ socket }: SocketClient) => socket.close()],
    ['drops its connection', ({ socket }: SocketClient) => socket.terminate()],
  ] as const) {
    it(`hangs up what runs, and forgets what waits, when its client ${way} [A2-51]`, async () => {
      const session = await open();
      const execution = await execThree(session);
      leave(session.client);
      await eventually('the hang-up', () => execution.hungUp === 1);
      await eventually('the connections to end', () => api.server.connections === 0);
      await settle();
      expect(api.executions.prepared.size).to.equal(1);
    });
  }

  it('stays open while nothing runs, as long as its client answers', async () => {
    const session = await open();
    let pings = 0;
    session.client.socket.on('ping', () => (pings += 1));
    for (let beat = 1; beat <= 5; beat += 1) {
      await clock.advance(30_000);
      await eventually('the ping', () => pings === beat);
      session.send({ type: 'cancel', id: 'nobody' });
      await eventually('the answer', () => session.messages.length === beat);
    }
    session.client.socket.pause();
    for (let beat = 0; beat < 3; beat += 1) await clock.advance(30_000);
    await eventually('the connections to end', () => api.server.connections === 0);
  });

  it('closes with 1000 when its runner goes while nothing runs', async () => {
    const session = await open();
    await api.runners.return(session.runnerId);
    expect(await session.closed()).to.equal(1000);
    expect(session.messages).to.deep.equal([]);
  });

  it('tells the end of everything when its runner goes, then closes with 1000', async () => {
    const session = await open();
    const execution = await execThree(session);
    await api.runners.return(session.runnerId);
    await session.end('c');
    expect(session.client.closeCode).to.equal(undefined);
    execution.end({ kind: 'failed', message: 'the runner was returned' });
    expect(await session.closed()).to.equal(1000);
    expect(session.of('a').at(-1)).to.deep.equal(aborted('a', 'the runner was returned'));
    expect(session.of('b')).to.deep.equal([aborted('b', GONE)]);
    expect(session.of('c')).to.deep.equal([aborted('c', GONE)]);
  });

  it('does not begin a command whose runner goes while the last one is cleared away', async () => {
    const session = await open();
    const execution = await execThree(session);
    execution.cleared = new Promise(() => undefined);
    execution.end({ kind: 'time-limit' });
    await session.end('a');
    await api.runners.return(session.runnerId);
    expect(await session.closed()).to.equal(1000);
    expect(session.of('b')).to.deep.equal([aborted('b', GONE)]);
    expect(api.executions.prepared.size).to.equal(1);
  });

  describe('when the service stops', () => {
    it('closes with 1001 at once while nothing runs', async () => {
      const session = await open({ graceMs: 3_600_000 });
      await api.server.stop();
      expect(await session.closed()).to.equal(1001);
    });

    it('does not wait for a client that does not answer', async () => {
      const session = await open({ graceMs: 3_600_000 });
      session.client.socket.pause();
      const stopping = api.server.stop();
      await clock.advance(1000);
      await stopping;
    });

    it('lets what runs come to its end, and begins nothing any more', async () => {
      const session = await open({ graceMs: 3_600_000 });
      const execution = await execThree(session);
      const stopping = api.server.stop();
      await session.end('c');
      session.exec('d');
      await session.end('d');
      session.send({ type: 'stdin', data: 'still heard' });
      await eventually('the input', () => execution.input.length === 1);
      execution.end({ kind: 'exited', exitCode: 4 });
      expect(await session.closed()).to.equal(1001);
      await stopping;
      for (const id of ['b', 'c', 'd']) expect(session.of(id)).to.deep.equal([aborted(id, STOPPING)]);
      expect(session.of('a').at(-1)).to.deep.equal({ type: 'exit', data: 4, ...OVER, id: 'a' });
      expect(execution.hungUp).to.equal(0);
    });

    it('cuts what runs at the deadline', async () => {
      const session = await open({ graceMs: 5000 });
      const execution = await execThree(session);
      const stopping = api.server.stop();
      await clock.advance(5000);
      await stopping;
      expect(await session.closed()).to.equal(1001);
      expect(session.of('a').at(-1)).to.deep.equal(aborted('a', STOPPING));
      expect(execution.hungUp).to.equal(1);
    });
  });

  describe('whose client does not read', () => {
    it('begins the next command only when the output of the last was read [A2-59]', async () => {
      const session = await open();
      const execution = await execThree(session);
      session.client.socket.pause();
      let sent = 0;
      await eventually('the buffer to be full', () => {
        sent += 256 * 1024;
        return !execution.sink.output('stdout', 'x'.repeat(256 * 1024));
      });
      execution.end({ kind: 'exited', exitCode: 0 });
      await settle();
      expect(api.executions.prepared.size).to.equal(1);
      session.client.socket.resume();
      await eventually('the next command', () => api.executions.prepared.size === 2);
      await eventually('all output', () => session.text('a').length === sent);
    });

    it('is read no further while its answers wait [A2-59]', async () => {
      const session = await open();
      const { socket } = session.client;
      socket.pause();
      const flood = 100_000;
      for (let index = 0; index < flood; index += 1) {
        session.send({ type: 'cancel', id: String(index).padStart(128) });
      }
      session.exec('last');
      let before = -1;
      await eventually('the client to be held back', () => {
        const now = socket.bufferedAmount;
        const isStill = now === before && now > 0;
        before = now;
        return isStill;
      });
      expect(api.executions.prepared.size).to.equal(0);
      socket.resume();
      await eventually('all answers', () => session.messages.length === flood, 20_000);
      await eventually('what was sent last', () => api.executions.prepared.size === 1);
    });
  });
});
