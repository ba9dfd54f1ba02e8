import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { processesWith } from '../support/living-processes.js';
import type { SessionClient } from '../support/session-client.js';
import type { ServiceClient } from '../support/test-service.js';
import { TestService } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

const PIPES = { interactive: false };

/** All of the chain: client, session, executions, the client of Nomad, the embedded agent, processes. */
describe('sessions of the service', function () {
  this.timeout(120_000);

  let opened: TestService;
  let client: ServiceClient;
  let session: SessionClient;
  let count = 0;

  before(async () => {
    opened = await TestService.open();
    client = opened.client;
    await client.openPool(1);
  });

  after(async () => {
    await opened[Symbol.asyncDispose]();
    const told = opened.log.lines.filter(({ level }) => level === 'warn' || level === 'error');
    expect(told.map(({ message }) => message)).to.deep.equal([]);
  });

  beforeEach(async () => {
    await client.untilIdle(1);
    session = await client.openSession(await client.claim());
  });

  afterEach(async () => {
    session.client.socket.terminate();
    await client.send('DELETE', `/runners/${session.runnerId}`);
  });

  function newMark(): string {
    count += 1;
    return `session-${process.pid}-${count}`;
  }

  it('runs 200 commands in their order, each with its own output, exit and id', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => String(index));
    let ended = 0;
    for (const [index, id] of ids.entries()) {
      while (index - ended > 16) {
        await session.end(String(ended));
        ended += 1;
      }
      session.exec(id, `echo "$GREETING ${id}"; echo "$SERAI_EXECUTION" >&2; exit ${index % 100}`, {
        environment: { GREETING: `hello` },
        interactive: index % 2 === 0,
      });
    }
    await session.end('199');
    expect(session.ended).to.deep.equal(ids);
    for (const [index, id] of ids.entries()) {
      const told = session.of(id);
      expect(told[0]).to.deep.equal({ type: 'start', executionId: session.text(id, 'stderr').trim(), id });
      expect(session.text(id)).to.equal(`hello ${id}${index % 2 === 0 ? '\r\n' : '\n'}`);
      expect(told.at(-1)).to.include({ type: 'exit', data: index % 100, oomKilled: false });
      expect(told.filter(({ type }) => type === 'exit' || type === 'start')).to.have.length(2);
    }
    expect(session.messages.filter((message) => !('id' in message))).to.deep.equal([]);
  });

  it('gives input to the right command, also any bytes', async () => {
    const bytes = randomBytes(1_000_000);
    session.exec('a', 'read line; echo "a $line"', PIPES);
    session.exec('b', 'sha256sum', PIPES);
    session.send({ type: 'stdin', id: 'a', data: 'x\nnot for b\n' });
    await session.end('a');
    for (let at = 0; at < bytes.length; at += 60_000) {
      session.client.socket.send(bytes.subarray(at, at + 60_000));
    }
    session.send({ type: 'eof' });
    await session.end('b');
    const hash = createHash('sha256').update(bytes).digest('hex');
    expect([session.text('a'), session.text('b')]).to.deep.equal(['a x\n', `${hash}  -\n`]);
  });

  for (const interactive of [true, false]) {
    it(`interrupts by a signal, and cancels, ${interactive ? 'with a terminal' : 'without one'}`, async () => {
      const mark = newMark();
      session.exec('a', `trap 'echo caught' INT; echo on; while :; do sleep 0.05; done; : ${mark}`, {
        interactive,
      });
      session.exec('b', 'echo never');
      session.exec('c', 'echo next');
      await eventually('the program', () => session.text('a').includes('on'));
      session.send({ type: 'signal', id: 'a', data: 'SIGINT' });
      await eventually('the answer to the signal', () => session.text('a').includes('caught'));
      session.send({ type: 'cancel', id: 'b' });
      session.send({ type: 'cancel', id: 'a' });
      await session.end('c');
      expect(session.ended).to.deep.equal(['b', 'a', 'c']);
      for (const id of ['a', 'b']) {
        expect(session.of(id).at(-1)).to.include({ type: 'error', data: 'the command was cancelled' });
      }
      expect(session.of('b')).to.have.length(1);
      expect(processesWith(mark)).to.deep.equal([]);
    });
  }

  it('begins the next command only when nothing of one that was cut is left', async () => {
    const mark = newMark();
    const left: number[] = [];
    session.client.onMessage = (message) => {
      if (message.type === 'start' && 'id' in message && message.id === 'after') {
        left.push(processesWith(mark).length);
      }
    };
    for (let round = 0; round < 6; round += 1) {
      const timeLimit = round % 2;
      session.exec('cut', `setsid sh -c 'sleep 600; : ${mark}' & sleep 600; : ${mark}`, { timeLimit });
      session.exec('after', 'true', PIPES);
      await eventually('the program', () => processesWith(mark).length > 1);
      if (timeLimit === 0) session.send({ type: 'cancel', id: 'cut' });
      await eventually('both ends', () => session.ended.length === 2 * (round + 1));
    }
    expect(left).to.deep.equal([0, 0, 0, 0, 0, 0]);
  });

  it('ends what runs, and forgets what waits, when its client vanishes [A2-51]', async () => {
    const marks = [newMark(), newMark()];
    for (const mark of marks) session.exec(mark, `sleep 600; : ${mark}`);
    await eventually('the program', () => processesWith(marks[0] ?? '').length > 0);
    session.client.socket.terminate();
    await eventually('the end of the program', () => processesWith(marks[0] ?? '').length === 0);
    const answer = await client.run(session.runnerId, 'echo fine', PIPES);
    expect(answer.text('stdout')).to.equal('fine\n');
    expect(processesWith(marks[1] ?? '')).to.deep.equal([]);
  });

  it('tells all ends, then closes with 1000, when its runner is returned', async () => {
    for (const id of ['a', 'b', 'c']) session.exec(id, 'sleep 600');
    await eventually('the start', () => session.of('a').length > 0);
    await client.send('DELETE', `/runners/${session.runnerId}`);
    expect(await session.closed()).to.equal(1000);
    expect(session.ended).to.have.members(['a', 'b', 'c']);
    expect(session.of('a').at(-1)).to.include({ data: 'the runner was returned while the command ran' });
    expect(session.of('c').at(-1)).to.include({ data: 'the runner is gone, so the command was not run' });
  });

  it('does not keep a runner that nothing runs on', async () => {
    await client.send('DELETE', `/runners/${session.runnerId}`);
    await client.untilIdle(1);
    const idle = await client.openSession(await client.claim(0, 1));
    idle.exec('a', 'sleep 1.5; echo still there', PIPES);
    await idle.end('a');
    expect(idle.text('a')).to.equal('still there\n');
    expect(await idle.closed()).to.equal(1000);
  });

  it('loses nothing of a client that reads slowly [A2-59]', async () => {
    const size = 24_000_001;
    session.client.socket.pause();
    for (const id of ['a', 'b']) session.exec(id, `head -c ${size} /dev/zero | tr '\\0' ${id}`, PIPES);
    await eventually('the first program', () => processesWith(`\0${size}\0`).length > 0);
    session.client.socket.resume();
    await session.end('b');
    for (const id of ['a', 'b']) expect(session.text(id) === id.repeat(size)).to.equal(true);
  });

  it('lets what runs come to its end when the service stops, and closes with 1001', async () => {
    const settings = { SERAI_SHUTDOWN_GRACE_SECONDS: '60' };
    await using other = await TestService.open(settings);
    await other.client.openPool(1);
    const last = await other.client.openSession(await other.client.claim());
    last.exec('a', 'read line; echo "$line"', PIPES);
    last.exec('b', 'echo never', PIPES);
    await eventually('the start', () => last.of('a').length > 0);
    const stopping = other.service.stop();
    await last.end('b');
    last.send({ type: 'stdin', data: 'to the end\n' });
    expect(await last.closed()).to.equal(1001);
    await stopping;
    expect(last.text('a')).to.equal('to the end\n');
    expect(last.of('b').at(-1)).to.include({ type: 'error', data: 'the service is stopping' });
  });
});
