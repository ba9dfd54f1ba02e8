import { expect } from 'chai';
import { OUT_OF_MEMORY_TEXT, OUTPUT_LIMIT_TEXT } from '../../../lib/protocol/websocket.js';
import type { Exit } from '../../../lib/execution/api.js';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock } from '../../support/fake-clock.js';
import { TestApi } from '../../support/test-api.js';
import { eventually, gate } from '../../support/waiting.js';
import { SocketClient } from '../../support/websocket-client.js';

describe('the socket of an execution', () => {
  let api: TestApi;
  let clock: FakeClock;
  let execution: FakeExecution;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await TestApi.open({ clock });
  });

  afterEach(async () => {
    await api.server.destroy();
    expect(clock.armed).to.equal(0);
  });

  async function open(options?: Parameters<typeof SocketClient.open>[1]): Promise<SocketClient> {
    const { url } = await api.prepare();
    execution = api.executions.last;
    const client = await SocketClient.open(url, options);
    await execution.running;
    return client;
  }

  it('says start, output of both streams in order, the exit, and closes with 1000', async () => {
    const client = await open();
    execution.sink.started();
    execution.sink.output('stdout', 'a');
    execution.sink.output('stderr', 'b');
    execution.sink.output('stdout', 'c€\r\n');
    execution.end({ kind: 'exited', exitCode: 3 });
    expect(await client.closed()).to.equal(1000);
    expect(client.messages).to.deep.equal([
      { type: 'start' },
      { type: 'stdout', data: 'a' },
      { type: 'stderr', data: 'b' },
      { type: 'stdout', data: 'c€\r\n' },
      { type: 'exit', data: 3 },
    ]);
    expect(client.binaryFrames).to.equal(0);
    expect(execution.hungUp).to.equal(0);
  });

  const ends: readonly (readonly [Exit, object])[] = [
    [
      { kind: 'exited', exitCode: 0 },
      { type: 'exit', data: 0 },
    ],
    [{ kind: 'time-limit' }, { type: 'timeout' }],
    [{ kind: 'inactive' }, { type: 'timeout' }],
    [{ kind: 'output-limit' }, { type: 'error', data: OUTPUT_LIMIT_TEXT }],
    [{ kind: 'out-of-memory' }, { type: 'error', data: OUT_OF_MEMORY_TEXT }],
    [
      { kind: 'failed', message: 'the runner was lost' },
      { type: 'error', data: 'the runner was lost' },
    ],
  ];
  for (const [exit, message] of ends) {
    it(`says start first and one end, for an exit of kind ${exit.kind} before any output`, async () => {
      const client = await open();
      execution.end(exit);
      expect(await client.closed()).to.equal(1000);
      expect(client.messages).to.deep.equal([{ type: 'start' }, message]);
    });
  }

  it('sends nothing after the end [A2-49]', async () => {
    const client = await open();
    execution.end({ kind: 'time-limit' });
    await execution.exit;
    await Promise.resolve();
    expect(execution.sink.output('stdout', 'late')).to.equal(true);
    execution.sink.started();
    await client.closed();
    expect(client.types).to.deep.equal(['start', 'timeout']);
  });

  it('joins the output of one turn into few messages, and delays none of another turn', async () => {
    const client = await open();
    for (let index = 0; index < 1000; index += 1) execution.sink.output('stdout', 'x');
    await eventually('the flood', () => client.text('stdout').length === 1000);
    expect(client.types).to.deep.equal(['start', 'stdout']);
    execution.sink.output('stdout', 'y');
    await eventually('the lone character', () => client.text('stdout').length === 1001);
    expect(clock.monotonicMs()).to.equal(0);
    client.socket.terminate();
  });

  it('hands text and binary frames on as input, in order [B11]', async () => {
    const client = await open();
    client.socket.send('hello €\n');
    client.socket.send(Buffer.from([0xff, 0x00, 0x03]));
    client.socket.send('\x04');
    await eventually('the input', () => execution.input.length === 3);
    expect(Buffer.concat(execution.input)).to.deep.equal(
      Buffer.concat([Buffer.from('hello €\n'), Buffer.from([0xff, 0x00, 0x03]), Buffer.from('\x04')]),
    );
    client.socket.terminate();
  });

  for (const [way, leave] of [
    ['closes with 1000', (client: SocketClient) => client.socket.close(1000)],
    ['closes with 1001', (client: SocketClient) => client.socket.close(1001)],
    ['drops the connection', (client: SocketClient) => client.socket.terminate()],
    [
      'sends a frame beyond the limit',
      (client: SocketClient) => client.socket.send(Buffer.alloc(2 ** 20 + 1)),
    ],
  ] as const) {
    it(`ends the program of a client that ${way} [A2-51]`, async () => {
      const client = await open();
      execution.sink.output('stdout', 'x'.repeat(100_000));
      leave(client);
      await eventually('the hang-up', () => execution.hungUp === 1);
      await eventually('the connections to end', () => api.server.connections === 0);
      expect(execution.sink.output('stdout', 'into the void')).to.equal(true);
      await execution.sink.drained();
      expect(execution.hungUp).to.equal(1);
      expect(api.log.lines.filter(({ level }) => level === 'warn' || level === 'error')).to.deep.equal([]);
    });
  }

  it('closes with the code that says what was wrong with a frame', async () => {
    for (const [code, frame] of [
      [1007, Buffer.from([0xff, 0xfe])],
      [1009, Buffer.alloc(2 ** 20 + 1, 'x')],
    ] as const) {
      const client = await open();
      client.socket.send(frame, { binary: false });
      expect(await client.closed()).to.equal(code);
      await eventually('the hang-up', () => execution.hungUp === 1);
      expect(execution.input).to.deep.equal([]);
    }
  });

  it('bounds what waits for a client that does not read, and goes on when it does [A2-59]', async () => {
    const client = await open();
    client.socket.pause();
    const chunk = 'x'.repeat(64 * 1024);
    let sent = 0;
    await eventually('the buffer to be full', () => {
      sent += chunk.length;
      return !execution.sink.output('stdout', chunk);
    });
    let isDrained = false;
    const draining = execution.sink.drained().then(() => (isDrained = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDrained).to.equal(false);
    client.socket.resume();
    await draining;
    expect(execution.sink.output('stdout', 'end')).to.equal(true);
    execution.end({ kind: 'exited', exitCode: 0 });
    expect(await client.closed()).to.equal(1000);
    expect(client.text('stdout').length).to.equal(sent + 3);
  });

  it('lets a program that does not take its input hold its client back', async () => {
    const client = await open();
    const taking = gate();
    execution.take = () => taking.promise;
    let isWritten = false;
    const sendMore = (): void => {
      if (client.socket.bufferedAmount === 0) client.socket.send(Buffer.alloc(256 * 1024));
    };
    await eventually('the client to be held back', () => {
      sendMore();
      return client.socket.bufferedAmount > 0 && execution.input.length >= 4;
    });
    const heldBack = execution.input.length;
    await clock.advance(300_000); // not taken for a client that is gone
    expect(execution.hungUp).to.equal(0);
    expect(execution.input.length).to.be.within(heldBack, heldBack + 8);
    execution.take = () => Promise.resolve();
    taking.open();
    client.socket.send('last', () => (isWritten = true));
    await eventually('the rest', () => isWritten && execution.input.at(-1)?.toString() === 'last');
    client.socket.terminate();
    await eventually('the hang-up', () => execution.hungUp === 1);
  });

  it('gives up a client that answers two pings in a row with nothing [A2-62]', async () => {
    const client = await open({ autoPong: false });
    let pings = 0;
    client.socket.on('ping', () => (pings += 1));
    await clock.advance(30_000);
    await eventually('the first ping', () => pings === 1);
    await clock.advance(30_000);
    await eventually('the second ping', () => pings === 2);
    expect(execution.hungUp).to.equal(0);
    await clock.advance(30_000);
    await eventually('the hang-up', () => execution.hungUp === 1);
    expect(await client.closed()).to.equal(1006);
  });

  it('notices a client that vanished while nothing is read from it [A2-62]', async () => {
    const client = await open();
    execution.take = () => new Promise(() => undefined);
    for (let i = 0; i < 6; i += 1) client.socket.send(Buffer.alloc(256 * 1024));
    await eventually('the client to be held back', () => execution.input.length >= 4);
    client.socket.terminate();
    for (let beat = 0; execution.hungUp === 0 && beat < 50; beat += 1) await clock.advance(30_000);
    await eventually('the hang-up', () => execution.hungUp === 1);
    await eventually('the connections to end', () => api.server.connections === 0);
  });

  it('gives up a client that does not read the end of a long output [A2-59]', async () => {
    const client = await open();
    client.socket.pause();
    while (execution.sink.output('stdout', 'x'.repeat(256 * 1024)));
    execution.end({ kind: 'exited', exitCode: 0 });
    for (let beat = 0; api.server.connections > 0 && beat < 50; beat += 1) await clock.advance(30_000);
    await eventually('the connections to end', () => api.server.connections === 0);
    expect(execution.hungUp).to.equal(0);
    client.socket.terminate();
  });

  it('passes on line ends and pieces of text as they come [A2-55] [A2-56]', async () => {
    const client = await open();
    const lines = [0, 1].map((n) => JSON.stringify({ n, text: `"'\r\n<b>${'é'.repeat(20_000)}` }));
    const whole = `a\r\nb\n\r${lines.map((line) => `${line}\r\n`).join('')}`;
    for (let at = 0; at < whole.length; at += 997) {
      execution.sink.output('stdout', whole.slice(at, at + 997));
      if (at % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    execution.end({ kind: 'exited', exitCode: 0 });
    await client.closed();
    expect(client.text('stdout') === whole).to.equal(true);
  });

  it('keeps a quiet client that answers its pings [A2-41]', async () => {
    const client = await open();
    let pings = 0;
    client.socket.on('ping', () => (pings += 1));
    for (let beat = 1; beat <= 10; beat += 1) {
      await clock.advance(30_000);
      await eventually(`ping ${beat}`, () => pings === beat);
      // The pong went out with the ping's event; a message behind it tells when it has arrived.
      client.socket.send('.');
      await eventually('what follows the pong', () => execution.input.length === beat);
    }
    expect(execution.hungUp).to.equal(0);
    execution.end({ kind: 'exited', exitCode: 0 });
    expect(await client.closed()).to.equal(1000);
  });

  it('drops a client that does not answer its close', async () => {
    const client = await open();
    client.socket.pause();
    execution.end({ kind: 'exited', exitCode: 0 });
    await eventually('the close to be sent', () => clock.armed === 2);
    await clock.advance(10_000);
    await eventually('the connections to end', () => api.server.connections === 0);
    client.socket.terminate();
    expect(execution.hungUp).to.equal(0);
  });

  it('ends with a fixed sentence where an execution rejects against its contract', async () => {
    const { url } = await api.prepare();
    const broken = api.executions.last;
    Object.defineProperty(broken, 'exit', { get: () => Promise.reject(new Error('internal')) });
    const client = await SocketClient.open(url);
    await client.closed();
    expect(client.messages.at(-1)).to.deep.equal({
      type: 'error',
      data: 'the execution failed unexpectedly',
    });
  });
});
