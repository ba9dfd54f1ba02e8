import { expect } from 'chai';
import { PROGRAM_SIGNALS } from '../../../lib/base/program-signals.js';
import type { Exit } from '../../../lib/execution/api.js';
import { OUT_OF_MEMORY_TEXT, OUTPUT_LIMIT_TEXT } from '../../../lib/protocol/websocket.js';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock } from '../../support/fake-clock.js';
import { TestApi } from '../../support/test-api.js';
import { eventually, gate } from '../../support/waiting.js';
import { SocketClient } from '../../support/websocket-client.js';

describe('a socket that speaks serai.v1', () => {
  let api: TestApi;
  let clock: FakeClock;
  let execution: FakeExecution;
  let client: SocketClient;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await TestApi.open({ clock });
    const { url } = await api.prepare();
    execution = api.executions.last;
    client = await SocketClient.open(url, { protocols: ['other', 'serai.v1'] });
    await execution.running;
  });

  afterEach(async () => {
    client.socket.terminate();
    await api.server.destroy();
    expect(clock.armed).to.equal(0);
  });

  function send(message: unknown): void {
    client.socket.send(JSON.stringify(message));
  }

  /** Resolves once everything that was sent before has been carried out. */
  async function arrived(): Promise<void> {
    const { length } = execution.input;
    client.socket.send(Buffer.from('.'));
    await eventually('what was sent last', () => execution.input.length > length);
  }

  it('chooses it among what the client offers', () => {
    expect(client.socket.protocol).to.equal('serai.v1');
  });

  it('says the id of the execution at the start, and how long it ran at the end', async () => {
    execution.sink.started();
    execution.sink.output('stdout', 'a');
    await clock.advance(1234);
    execution.end({ kind: 'exited', exitCode: 137 });
    expect(await client.closed()).to.equal(1000);
    expect(client.messages).to.deep.equal([
      { type: 'start', executionId: execution.id },
      { type: 'stdout', data: 'a' },
      { type: 'exit', data: 137, durationMs: 1234, oomKilled: false },
    ]);
    expect(client.binaryFrames).to.equal(0);
  });

  const ends: readonly (readonly [Exit, object])[] = [
    [{ kind: 'time-limit' }, { type: 'timeout', durationMs: 50, oomKilled: false }],
    [{ kind: 'inactive' }, { type: 'timeout', durationMs: 50, oomKilled: false }],
    [{ kind: 'output-limit' }, { type: 'error', data: OUTPUT_LIMIT_TEXT, durationMs: 50, oomKilled: false }],
    [{ kind: 'out-of-memory' }, { type: 'error', data: OUT_OF_MEMORY_TEXT, durationMs: 50, oomKilled: true }],
    [
      { kind: 'failed', message: 'the runner was lost' },
      { type: 'error', data: 'the runner was lost', durationMs: 50, oomKilled: false },
    ],
  ];
  for (const [exit, message] of ends) {
    it(`ends with its own message for an exit of kind ${exit.kind}`, async () => {
      execution.sink.started();
      await clock.advance(50);
      execution.end(exit);
      expect(await client.closed()).to.equal(1000);
      expect(client.messages.at(-1)).to.deep.equal(message);
    });
  }

  it('has a duration of 0 where the command never started', async () => {
    await clock.advance(15_000);
    execution.end({ kind: 'failed', message: 'too slow' });
    await client.closed();
    expect(client.messages).to.deep.equal([
      { type: 'start', executionId: execution.id },
      { type: 'error', data: 'too slow', durationMs: 0, oomKilled: false },
    ]);
  });

  it('takes text as input in UTF-8, and binary frames as they are', async () => {
    send({ type: 'stdin', data: 'hello €😀\0\n' });
    client.socket.send(Buffer.from([0xff, 0x00, 0x7b]));
    send({ type: 'stdin', data: '' });
    await arrived();
    expect(Buffer.concat(execution.input)).to.deep.equal(
      Buffer.concat([Buffer.from('hello €😀\0\n'), Buffer.from([0xff, 0x00, 0x7b]), Buffer.from('.')]),
    );
    expect(execution.asked).to.deep.equal([]);
  });

  it('passes on the end of input and sizes of the terminal', async () => {
    send({ type: 'resize', cols: 120, rows: 40 });
    send({ type: 'resize', rows: 65_535, cols: 1 });
    send({ type: 'eof' });
    await arrived();
    expect(execution.asked).to.deep.equal([[120, 40], [1, 65_535], 'eof']);
  });

  it('passes on every signal that it knows', async () => {
    for (const name of PROGRAM_SIGNALS) send({ type: 'signal', data: name });
    await arrived();
    expect(execution.asked).to.deep.equal(PROGRAM_SIGNALS);
  });

  it('says of a signal that it may not have reached the program, in words of its own', async () => {
    execution.signalled = () => Promise.reject(new Error('secret text of Nomad'));
    send({ type: 'signal', data: 'SIGTERM' });
    await eventually('the refusal', () => client.types.includes('refused'));
    expect(client.messages.at(-1)).to.deep.equal({
      type: 'refused',
      data: 'SIGTERM may not have reached the program; send it again',
    });
    expect(execution.hungUp).to.equal(0);
    const told = api.log.lines.filter(({ level }) => level === 'warn');
    expect(told.map(({ message }) => message)).to.deep.equal(['a signal may not have reached a program']);
  });

  it('says nothing of a signal that came too late', async () => {
    const failing = gate<never>();
    execution.signalled = () => failing.promise.then(() => Promise.reject(new Error('too late')));
    send({ type: 'signal', data: 'SIGTERM' });
    await arrived();
    execution.end({ kind: 'exited', exitCode: 0 });
    await client.closed();
    failing.open(undefined as never);
    expect(client.types).to.deep.equal(['start', 'exit']);
    expect(api.log.lines.filter(({ level }) => level === 'warn')).to.deep.equal([]);
  });

  const refused: readonly (readonly [sent: string, why: string])[] = [
    ['hello', 'the message must be JSON'],
    ['', 'the message must be JSON'],
    ['{"type":"eof"}{"type":"eof"}', 'the message must be JSON'],
    ['null', 'the message must be an object, not null'],
    ['[]', 'the message must be an object, not this list'],
    ['"eof"', 'the message must be an object, not this text'],
    ['{}', 'type is missing'],
    ['{"type":"EOF"}', 'type must be one of stdin, resize, signal, eof, not this text'],
    ['{"type":["eof"]}', 'type must be one of stdin, resize, signal, eof, not this list'],
    ['{"type":"__proto__"}', 'type must be one of stdin, resize, signal, eof, not this text'],
    ['{"type":"eof","data":""}', 'unknown field "data"'],
    ['{"type":"stdin"}', 'data is missing'],
    ['{"type":"stdin","data":null}', 'data must be a text, not null'],
    ['{"type":"stdin","data":["a"]}', 'data must be a text, not this list'],
    ['{"type":"signal"}', 'data is missing'],
    ['{"type":"signal","data":"INT"}', `data must be one of ${PROGRAM_SIGNALS.join(', ')}, not this text`],
    ['{"type":"signal","data":2}', `data must be one of ${PROGRAM_SIGNALS.join(', ')}, not 2`],
    [
      '{"type":"signal","data":"SIGINT; id"}',
      `data must be one of ${PROGRAM_SIGNALS.join(', ')}, not this text`,
    ],
    ['{"type":"resize","cols":80}', 'rows is missing'],
    ['{"type":"resize","cols":0,"rows":24}', 'cols must be an integer from 1 to 65535, not 0'],
    ['{"type":"resize","cols":80,"rows":65536}', 'rows must be an integer from 1 to 65535, not 65536'],
    ['{"type":"resize","cols":80.5,"rows":24}', 'cols must be an integer from 1 to 65535, not 80.5'],
    ['{"type":"resize","cols":"80","rows":24}', 'cols must be an integer from 1 to 65535, not this text'],
  ];
  it('refuses what is no message, says why, and goes on', async () => {
    for (const [sent, why] of refused) {
      const { length } = client.messages;
      client.socket.send(sent);
      await eventually(`an answer to ${sent}`, () => client.messages.length > Math.max(length, 1));
      expect(client.messages.at(-1), sent).to.deep.equal({ type: 'refused', data: why });
    }
    await arrived();
    expect(Buffer.concat(execution.input).toString()).to.equal('.');
    expect(execution.asked).to.deep.equal([]);
    expect(execution.hungUp).to.equal(0);
    execution.end({ kind: 'exited', exitCode: 0 });
    expect(await client.closed()).to.equal(1000);
    expect(client.types.slice(-2)).to.deep.equal(['refused', 'exit']);
  });

  it('keeps a refusal in its place among the output', async () => {
    execution.sink.output('stdout', 'before');
    client.socket.send('?');
    await eventually('the refusal', () => client.types.includes('refused'));
    execution.sink.output('stdout', 'after');
    execution.end({ kind: 'exited', exitCode: 0 });
    await client.closed();
    expect(client.types).to.deep.equal(['start', 'stdout', 'refused', 'stdout', 'exit']);
  });

  it('reads no further from a client that does not read its refusals', async () => {
    client.socket.pause();
    const taken = gate();
    let asked = 0;
    execution.take = () => {
      asked += 1;
      return taken.promise;
    };
    for (let i = 0; i < 20_000; i += 1) client.socket.send('');
    let before = 0;
    await eventually('reading to stop', () => {
      const isStill = asked === before && asked > 0;
      before = asked;
      return isStill;
    });
    // 1 MiB at 256 bytes a frame, and what one read brought.
    expect(asked).to.be.within(4096, 16_000);
    taken.open();
    execution.take = () => Promise.resolve();
    client.socket.resume();
    await eventually('all refusals', () => client.types.lastIndexOf('refused') === 20_000);
  });
});
