import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Exit } from '../../../lib/execution/api.js';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import { TestApi } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';
import { SocketClient } from '../../support/websocket-client.js';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 40);

const ENDS: readonly Exit[] = [
  { kind: 'exited', exitCode: 0 },
  { kind: 'time-limit' },
  { kind: 'output-limit' },
  { kind: 'out-of-memory' },
  { kind: 'failed', message: 'lost' },
];
const END_TYPES = ['exit', 'timeout', 'error'];
const ALL_TYPES = ['start', 'stdout', 'stderr', 'refused', ...END_TYPES];

type Act = (client: SocketClient, execution: FakeExecution, clock: FakeClock) => void | Promise<void>;

function act<T>(values: fc.Arbitrary<T>, run: (value: T) => Act): fc.Arbitrary<{ text: string; run: Act }> {
  return values.map((value) => ({ text: fc.stringify(value), run: run(value) }));
}

const text = fc.string({ unit: 'binary', maxLength: 50 });
const message = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc
    .record(
      {
        type: fc.oneof(fc.constantFrom('stdin', 'resize', 'signal', 'eof', 'exit', '__proto__'), text),
        data: fc.oneof(text, fc.constantFrom('SIGINT', 'SIGKILL', 'SIGSEGV'), fc.jsonValue()),
        cols: fc.oneof(fc.integer(), fc.double(), fc.constant(null)),
        rows: fc.integer({ min: 1, max: 65_535 }),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
);

/** What a client may do, well behaved or not. */
const clientActs = fc.oneof(
  act(
    text,
    (value) =>
      ({ socket }) =>
        socket.send(value),
  ),
  act(
    message,
    (value) =>
      ({ socket }) =>
        socket.send(value),
  ),
  act(
    fc.uint8Array({ maxLength: 50 }),
    (value) =>
      ({ socket }) =>
        socket.send(value),
  ),
  act(
    fc.constantFrom(60_000, 1_000_000),
    (size) =>
      ({ socket }) =>
        socket.send(randomBytes(size)),
  ),
  act(fc.uint8Array({ maxLength: 125 }), (value) => ({ socket }) => {
    if (socket.readyState === socket.OPEN) socket.ping(value);
  }),
  act(fc.boolean(), (isPaused) => ({ socket }) => {
    if (isPaused) socket.pause();
    else socket.resume();
  }),
);

/** How a client may leave. */
const leaving = fc.oneof(
  act(
    fc.constantFrom(1000, 1001, 1011, 4000),
    (code) =>
      ({ socket }) =>
        socket.close(code),
  ),
  act(
    fc.constant('terminate'),
    () =>
      ({ socket }) =>
        socket.terminate(),
  ),
  act(
    fc.constant('too long'),
    () =>
      ({ socket }) =>
        socket.send(Buffer.alloc(2 ** 20 + 1)),
  ),
);

/** What the execution may do. */
const serverActs = fc.oneof(
  act(
    fc.constant('start'),
    () =>
      (_client, { sink }) =>
        sink.started(),
  ),
  act(fc.tuple(fc.constantFrom('stdout', 'stderr'), text), ([stream, value]) => (_client, { sink }) => {
    sink.output(stream, value);
  }),
  act(fc.constant('flood'), () => (_client, { sink }) => {
    for (let i = 0; i < 40; i += 1) sink.output(i % 2 ? 'stdout' : 'stderr', 'x'.repeat(50_000));
  }),
  act(fc.constantFrom(...ENDS), (exit) => (_client, execution) => execution.end(exit)),
  act(fc.boolean(), (isFailing) => (_client, execution) => {
    execution.signalled = () => (isFailing ? Promise.reject(new Error('no')) : Promise.resolve());
  }),
  act(fc.constant('turn'), () => () => settle()),
  act(fc.constant('31 s'), () => (_client, _execution, clock) => clock.advance(31_000)),
);

describe('sockets with any input', function () {
  this.timeout(120_000);

  let api: TestApi;
  let clock: FakeClock;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await TestApi.open({ clock });
  });

  /** Nothing is left: no connection, no timer, no word of an error. */
  afterEach(async () => {
    await api.server.destroy();
    expect(clock.armed).to.equal(0);
    expect(api.log.lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });

  /** Lets a client leave that has not, and looks that everything ends. */
  async function expectEnd(execution: FakeExecution, leave: () => void): Promise<void> {
    leave();
    await execution.exit;
    for (let beat = 0; api.server.connections > 0 && beat < 200; beat += 1) {
      await clock.advance(1000); // a client that reads nothing is given up by its pings
      await settle();
    }
    await eventually('the connections to end', () => api.server.connections === 0);
    expect(execution.hungUp).to.be.at.most(1);
    expect(execution.sink.output('stdout', 'into the void')).to.equal(true);
    await execution.sink.drained();
  }

  for (const protocols of [[], ['serai.v1']]) {
    it(`keep their order and end, whatever both sides do${protocols.map((name) => ` in ${name}`).join('')} [A2-43] [A2-51]`, async () => {
      const scripts = fc.array(fc.oneof(clientActs, serverActs), { maxLength: 25 });
      await fc.assert(
        fc.asyncProperty(scripts, leaving, async (script, leave) => {
          const { url } = await api.prepare();
          const execution = api.executions.last;
          const client = await SocketClient.open(url, { protocols });
          await execution.running;
          for (const { run } of script) await run(client, execution, clock);
          await expectEnd(execution, () => {
            client.socket.resume();
            void leave.run(client, execution, clock);
          });
          await client.closed();
          const { types } = client;
          expect(types.filter((type) => !ALL_TYPES.includes(type))).to.deep.equal([]);
          expect(types.filter((type) => type === 'start').length).to.be.at.most(1);
          expect(types.indexOf('start')).to.equal(types.length > 0 ? 0 : -1);
          const end = types.findIndex((type) => END_TYPES.includes(type));
          expect(end === -1 || end === types.length - 1).to.equal(true);
          expect(client.binaryFrames).to.equal(0);
          if (protocols.length === 0) expect(types).not.to.include('refused');
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
    });
  }

  it('end where what follows the handshake is no WebSocket [B11]', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), async (chunks) => {
        const { url } = await api.prepare();
        const execution = api.executions.last;
        const connection = await shakeHands(url);
        await execution.running;
        for (const chunk of chunks) {
          connection.write(chunk);
          await settle();
        }
        execution.sink.output('stdout', 'x');
        await expectEnd(execution, () => connection.resetAndDestroy());
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  });
});

/** Opens a WebSocket by hand and gives the connection below it. */
function shakeHands(url: string): Promise<Socket> {
  const { port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const connection = connect(Number(port), '127.0.0.1', () => {
      connection.write(
        [
          `GET ${pathname}${search} HTTP/1.1`,
          'Host: localhost',
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
          'Sec-WebSocket-Protocol: serai.v1',
          '',
          '',
        ].join('\r\n'),
      );
    });
    connection.on('error', reject);
    connection.once('data', () => {
      connection.resume(); // what the server says is not read here
      resolve(connection);
    });
  });
}
