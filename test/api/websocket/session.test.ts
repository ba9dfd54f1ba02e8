import { expect } from 'chai';
import { ServiceError } from '../../../lib/base/errors.js';
import type { FakeExecution } from '../../support/api-fakes.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import type { SessionClient } from '../../support/session-client.js';
import { TestApi } from '../../support/test-api.js';
import { eventually, gate } from '../../support/waiting.js';

const OVER = { durationMs: 0, oomKilled: false };

describe('a session', () => {
  let api: TestApi;
  let clock: FakeClock;
  let session: SessionClient;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await TestApi.open({ clock });
    session = await api.openSession();
  });

  afterEach(async () => {
    session.client.socket.terminate();
    await api.server.destroy();
    expect(clock.armed).to.equal(0);
    const told = api.log.lines.filter(({ level }) => level === 'warn' || level === 'error');
    expect(told).to.deep.equal([]);
  });

  /** The execution that was begun as the `count`th, once it runs. */
  async function running(count: number): Promise<FakeExecution> {
    await eventually(`execution ${count}`, () => api.executions.prepared.size >= count);
    const execution = [...api.executions.prepared.values()][count - 1];
    if (!execution) throw new Error('no execution');
    await execution.running;
    return execution;
  }

  /** Resolves once everything that was sent before was read. */
  async function arrived(): Promise<void> {
    const { length } = session.messages;
    session.send({ type: 'cancel', id: 'nobody' });
    await eventually('the answer', () =>
      session.messages.slice(length).some((message) => 'id' in message && message.id === 'nobody'),
    );
  }

  it('runs one command after the other, and prepares each at its turn', async () => {
    session.exec('a', 'first', { environment: { A: '1' }, timeLimit: 5, interactive: false });
    session.exec('b', 'second');
    const first = await running(1);
    await arrived();
    expect(api.executions.prepared.size).to.equal(1);
    expect(first.request).to.deep.equal({
      command: 'first',
      privileged: false,
      environment: { A: '1' },
      timeLimitSeconds: 5,
      outputLimitBytes: undefined,
      interactive: false,
      workingDirectory: undefined,
    });
    first.sink.started();
    first.sink.output('stdout', 'x');
    await clock.advance(70);
    first.end({ kind: 'exited', exitCode: 3 });
    const second = await running(2);
    second.sink.output('stderr', 'y');
    second.end({ kind: 'time-limit' });
    await session.end('b');
    expect(session.of('a')).to.deep.equal([
      { type: 'start', executionId: first.id, id: 'a' },
      { type: 'stdout', id: 'a', data: 'x' },
      { type: 'exit', data: 3, durationMs: 70, oomKilled: false, id: 'a' },
    ]);
    expect(session.of('b')).to.deep.equal([
      { type: 'start', executionId: second.id, id: 'b' },
      { type: 'stderr', id: 'b', data: 'y' },
      { type: 'timeout', ...OVER, id: 'b' },
    ]);
    expect(session.client.closeCode).to.equal(undefined);
  });

  it('keeps the order of many, and gives every message its id', async () => {
    api.executions.onPrepare = (execution) => {
      void execution.running.then(() => {
        execution.sink.output('stdout', execution.request.command);
        execution.end({ kind: 'exited', exitCode: 0 });
      });
    };
    const ids = Array.from({ length: 200 }, (_, index) => `id ${index} €"`);
    for (const [index, id] of ids.entries()) {
      session.exec(id, `command ${index}`);
      if (index % 10 === 9) await session.end(id);
    }
    expect(session.ended).to.deep.equal(ids);
    expect(session.messages).to.have.length(600);
    for (const [index, id] of ids.entries()) {
      expect(session.of(id).map(({ type }) => type)).to.deep.equal(['start', 'stdout', 'exit']);
      expect(session.text(id)).to.equal(`command ${index}`);
    }
    expect(session.client.binaryFrames).to.equal(0);
  });

  it('lets 16 wait, and tells the next at once that it does not', async () => {
    session.exec('runs');
    for (let index = 1; index <= 17; index += 1) session.exec(`${index}`);
    const end = await session.end('17');
    expect(end).to.deep.include({ type: 'error', id: '17', ...OVER });
    expect(end).to.have.property('data').that.contains('16 commands wait');
    expect(session.ended).to.deep.equal(['17']);
    expect(session.of('17')).to.have.length(1);
    for (let count = 1; count <= 17; count += 1) {
      (await running(count)).end({ kind: 'exited', exitCode: 0 });
    }
    await session.end('16');
    expect(session.ended).to.have.length(18);
  });

  it('lets 4 MiB wait, whatever the number', async () => {
    const command = 'x'.repeat(1000 * 1024);
    for (let index = 0; index <= 5; index += 1) session.exec(`${index}`, command);
    expect(await session.end('5'))
      .to.have.property('data')
      .that.contains('4194304 bytes');
    const first = await running(1);
    first.end({ kind: 'exited', exitCode: 0 });
    await running(2);
    session.exec('6', command);
    await arrived();
    expect(session.ended).to.deep.equal(['5', '0']);
  });

  it('refuses an id that runs or waits, whatever is wrong with it besides', async () => {
    session.exec('a');
    session.exec('b');
    for (const id of ['a', 'b']) {
      session.exec(id, 'again');
      session.send({ type: 'exec', id });
    }
    await arrived();
    expect(session.ended).to.deep.equal([]);
    expect(session.of('a').map(({ type }) => type)).to.deep.equal(['refused', 'refused']);
    expect(session.of('b').map(({ type }) => type)).to.deep.equal(['refused', 'refused']);
    (await running(1)).end({ kind: 'exited', exitCode: 0 });
    expect((await running(2)).request.command).to.equal('true');
    session.exec('a', 'once more');
    (await running(2)).end({ kind: 'exited', exitCode: 0 });
    expect((await running(3)).request.command).to.equal('once more');
  });

  it('gives input to the command that runs, and to no other', async () => {
    session.exec('a');
    session.exec('b');
    session.send({ type: 'stdin', data: 'x' });
    session.send({ type: 'stdin', id: 'a', data: '€' });
    session.send({ type: 'stdin', id: 'b', data: 'not for a' });
    session.client.socket.send(Buffer.from([0xff, 0]));
    session.send({ type: 'resize', cols: 5, rows: 6, id: 'a' });
    session.send({ type: 'signal', data: 'SIGINT' });
    session.send({ type: 'eof', id: 'a' });
    await arrived();
    const first = await running(1);
    expect(Buffer.concat(first.input)).to.deep.equal(
      Buffer.concat([Buffer.from('x€'), Buffer.from([0xff, 0])]),
    );
    expect(first.asked).to.deep.equal([[5, 6], 'SIGINT', 'eof']);
    expect(session.of('b')).to.deep.equal([{ type: 'refused', data: 'no command of this id runs', id: 'b' }]);
    first.end({ kind: 'exited', exitCode: 0 });
    const second = await running(2);
    session.send({ type: 'stdin', id: 'a', data: 'late' });
    session.send({ type: 'stdin', id: 'b', data: 'y' });
    await arrived();
    expect(Buffer.concat(second.input).toString()).to.equal('y');
  });

  it('cancels the command that runs, and begins the next when nothing is left of it', async () => {
    session.exec('a');
    session.exec('b');
    const first = await running(1);
    first.sink.output('stdout', 'x');
    const clearing = gate();
    first.cleared = clearing.promise;
    session.send({ type: 'cancel', id: 'a' });
    expect(await session.end('a')).to.deep.equal({
      type: 'error',
      data: 'the command was cancelled',
      ...OVER,
      id: 'a',
    });
    expect(first.hungUp).to.equal(1);
    session.send({ type: 'stdin', data: 'for b' });
    session.send({ type: 'resize', cols: 1, rows: 2 });
    await arrived();
    expect(api.executions.prepared.size).to.equal(1);
    clearing.open();
    const second = await running(2);
    await eventually('the input', () => second.input.length === 1);
    expect(second.input[0]?.toString()).to.equal('for b');
    expect(second.asked).to.deep.equal([[1, 2]]);
    expect(session.of('a').map(({ type }) => type)).to.deep.equal(['start', 'stdout', 'error']);
  });

  it('cancels commands that wait, also the next one, without running them', async () => {
    for (const id of ['a', 'b', 'c', 'd']) session.exec(id);
    const first = await running(1);
    session.send({ type: 'cancel', id: 'c' });
    await session.end('c');
    const clearing = gate();
    first.cleared = clearing.promise;
    first.end({ kind: 'time-limit' });
    await session.end('a');
    session.send({ type: 'cancel', id: 'b' });
    await session.end('b');
    await arrived();
    expect(api.executions.prepared.size).to.equal(1);
    clearing.open();
    (await running(2)).end({ kind: 'exited', exitCode: 0 });
    await session.end('d');
    expect(session.ended).to.deep.equal(['c', 'a', 'b', 'd']);
    expect(session.of('b')).to.deep.equal([
      { type: 'error', data: 'the command was cancelled', ...OVER, id: 'b' },
    ]);
  });

  it('begins one command, once, of many that were cancelled before the last was cleared away', async () => {
    session.exec('cut');
    const clearing = gate();
    (await running(1)).cleared = clearing.promise;
    session.send({ type: 'cancel', id: 'cut' });
    for (let index = 0; index < 50; index += 1) {
      session.exec('next', `command ${index}`);
      session.send({ type: 'cancel', id: 'next' });
    }
    session.exec('last');
    await arrived();
    expect(session.ended).to.have.length(51);
    clearing.open();
    await running(2);
    await settle();
    expect(api.executions.prepared.size).to.equal(2);
    expect(api.executions.last.request.command).to.equal('true');
  });

  it('goes on after a command that could not be prepared', async () => {
    api.executions.failure = new ServiceError('TOO_MANY_EXECUTIONS', 'the runner has 4');
    session.exec('a');
    expect(await session.end('a')).to.deep.equal({
      type: 'error',
      data: 'the runner has 4',
      ...OVER,
      id: 'a',
    });
    api.executions.failure = undefined;
    session.exec('b');
    (await running(1)).end({ kind: 'exited', exitCode: 0 });
    await session.end('b');
    await settle();
  });
});
