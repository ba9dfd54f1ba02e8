import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { expect } from 'chai';
import { OUTPUT_LIMIT_TEXT } from '../../lib/protocol/websocket.js';
import { processesWith } from '../support/living-processes.js';
import { TestService } from '../support/test-service.js';
import type { ServiceClient } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';
import type { SocketClient } from '../support/websocket-client.js';

/** Bytes that a process has written so far. */
function writtenBy(pid: number): number {
  return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'latin1'))?.[1]);
}

const SERAI_V1 = { protocols: ['serai.v1'] };

/** All of the chain: client, socket, execution, the client of Nomad, the embedded agent, a process. */
describe('sockets of the service', function () {
  this.timeout(60_000);

  let opened: TestService;
  let client: ServiceClient;
  let runnerId: string;
  let count = 0;

  before(async () => {
    opened = await TestService.open({ SERAI_EXECUTION_MAX_PER_RUNNER: '20' });
    client = opened.client;
    await client.openPool(1);
    runnerId = await client.claim();
  });

  after(async () => {
    await opened[Symbol.asyncDispose]();
    const told = opened.log.lines.filter(({ level }) => level === 'warn' || level === 'error');
    expect(told.map(({ message }) => message)).to.deep.equal([]);
  });

  function newMark(): string {
    count += 1;
    return `mark-${process.pid}-${count}`;
  }

  function send({ socket }: SocketClient, message: object): void {
    socket.send(JSON.stringify(message));
  }

  for (const interactive of [true, false]) {
    const how = interactive ? 'with a terminal' : 'without one';
    const newline = interactive ? '\r\n' : '\n';

    it(`gives text that is no UTF-8 as U+FFFD, in valid frames, ${how} [A2-54]`, async () => {
      const script = `printf 'a\\377\\376\\000A\\342\\202'; printf '\\254\\n'; head -c 100000 /dev/urandom; exit 7`;
      const program = await client.run(runnerId, script, { interactive });
      expect(program.messages.at(-1)).to.deep.equal({ type: 'exit', data: 7 });
      expect(program.text('stdout').startsWith(`a\ufffd\ufffd\0A€${newline}`)).to.equal(true);
      expect(program.binaryFrames).to.equal(0);
    });

    it(`keeps line ends as the program makes them, ${how} [A2-55]`, async () => {
      const program = await client.run(runnerId, `printf 'a\\r'; sleep 0.1; printf '\\nb\\n\\r'`, {
        interactive,
      });
      expect(program.text('stdout')).to.equal(interactive ? 'a\r\r\nb\r\n\r' : 'a\r\nb\n\r');
    });

    it(`keeps long lines whole and apart, ${how} [A2-56]`, async () => {
      const line = `{"text":"${'x'.repeat(20_000)}","quote":"\\\\""}`;
      const program = await client.run(runnerId, `printf '${line.replaceAll('\\', '\\\\')}\\n'; echo '{}'`, {
        interactive,
      });
      expect(program.text('stdout') === `${line}${newline}{}${newline}`).to.equal(true);
    });

    it(`gives what was printed before the time limit, ${how} [A2-61]`, async () => {
      const program = await client.run(runnerId, 'echo a; echo b >&2; sleep 99', {
        interactive,
        timeLimit: 1,
      });
      expect(program.types.at(-1)).to.equal('timeout');
      expect([program.text('stdout'), program.text('stderr')]).to.deep.equal([`a${newline}`, 'b\n']);
    });

    it(`ends a program that waits for input at its time limit, ${how} [A2-64]`, async () => {
      const program = await client.run(runnerId, 'cat', { interactive, timeLimit: 1 });
      expect(program.types).to.deep.equal(['start', 'timeout']);
    });

    it(`ends the input of a program by a message, ${how} [A2-64]`, async () => {
      const program = await client.open(runnerId, 'cat; echo end', { interactive }, SERAI_V1);
      send(program, { type: 'stdin', data: 'x\n' });
      send(program, { type: 'eof' });
      await program.closed();
      expect(program.messages.at(-1)).to.include({ type: 'exit', data: 0, oomKilled: false });
      expect(program.text('stdout')).to.include(`x${newline}`).and.to.include(`end${newline}`);
    });

    it(`gives exactly as many bytes as the output limit, and ends the program, ${how}`, async () => {
      const mark = newMark();
      const outputLimit = 100_001;
      const program = await client.run(runnerId, `yes ${mark}`, { interactive, outputLimit });
      expect(program.messages.at(-1)).to.deep.equal({ type: 'error', data: OUTPUT_LIMIT_TEXT });
      const line = `${mark}${newline}`;
      const whole = line.repeat(Math.ceil(outputLimit / line.length)).slice(0, outputLimit);
      expect(program.text('stdout') === whole).to.equal(true);
      await eventually('the end of the program', () => processesWith(mark).length === 0);
    });

    it(`carries signals to the program, ${how}`, async () => {
      const command = `trap 'echo caught; exit 9' TERM; echo on; while :; do sleep 0.05; done`;
      const program = await client.open(runnerId, command, { interactive }, SERAI_V1);
      await eventually('the program to run', () => program.text('stdout').includes('on'));
      send(program, { type: 'signal', data: 'SIGTERM' });
      await program.closed();
      expect(program.messages.at(-1)).to.include({ type: 'exit', data: 9 });
      expect(program.text('stdout')).to.equal(`on${newline}caught${newline}`);
    });

    const ways: readonly (readonly [string, (program: SocketClient) => void])[] = [
      ['closes with 1000', ({ socket }) => socket.close(1000)],
      ['closes with 1001', ({ socket }) => socket.close(1001)],
      ['drops its connection', ({ socket }) => socket.terminate()],
    ];
    for (const [way, leave] of ways) {
      it(`survives a client that ${way} in a flood of both streams, ${how} [A2-43] [A2-51]`, async () => {
        for (let round = 0; round < 3; round += 1) {
          const mark = newMark();
          const program = await client.open(runnerId, `yes ${mark} & yes ${mark} >&2`, { interactive });
          await eventually('the flood', () => program.messages.length > 3 + round * 20);
          leave(program);
          await eventually('the end of the program', () => processesWith(mark).length === 0);
        }
        expect((await client.run(runnerId, 'echo fine', { interactive })).text('stdout')).to.equal(
          `fine${newline}`,
        );
      });
    }

    it(`slows down the program of a client that does not read, and loses nothing, ${how} [A2-59]`, async () => {
      count += 1;
      const size = 64_000_000 + count;
      const program = await client.open(runnerId, `exec head -c ${size} /dev/zero`, { interactive });
      program.socket.pause();
      let pid = 0;
      await eventually('the program', () => {
        [pid = 0] = processesWith(`\0${size}\0`);
        return pid > 0;
      });
      let before = -1;
      await eventually('the program to stand still', () => {
        const now = writtenBy(pid);
        const isStill = now === before && now > 0;
        before = now;
        return isStill;
      });
      expect(before).to.be.lessThan(40_000_000);
      program.socket.resume();
      await program.closed();
      expect(program.text('stdout').length).to.equal(size);
    });
  }

  it('ends a silent program whose client resets its connection, also after a binary frame [B11]', async () => {
    const mark = newMark();
    const url = await client.prepare(runnerId, `sleep infinity; : ${mark}`, { timeLimit: 0 });
    const { port, pathname, search } = new URL(url);
    const connection = connect(Number(port), '127.0.0.1');
    connection.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    connection.resume();
    await eventually('the program', () => processesWith(mark).length > 0);
    connection.write(Buffer.from([0x82, 0x81, 0, 0, 0, 0, 0xff])); // one byte, binary, with a mask of zeros
    connection.resetAndDestroy();
    await eventually('the end of the program', () => processesWith(mark).length === 0);
  });

  it('takes any bytes as input, and tells their end, without a terminal', async () => {
    const bytes = randomBytes(2_000_000);
    const program = await client.open(runnerId, 'sha256sum', { interactive: false }, SERAI_V1);
    for (let at = 0; at < bytes.length; at += 60_000) program.socket.send(bytes.subarray(at, at + 60_000));
    send(program, { type: 'eof' });
    await program.closed();
    const hash = createHash('sha256').update(bytes).digest('hex');
    expect(program.text('stdout')).to.equal(`${hash}  -\n`);
  });

  it('sets the size of the terminal, also before the program starts', async () => {
    const program = await client.open(runnerId, 'stty size; read x; stty size', {}, SERAI_V1);
    send(program, { type: 'resize', cols: 101, rows: 37 });
    await eventually('the first size', () => program.text('stdout').includes('37 101'));
    send(program, { type: 'resize', cols: 55, rows: 11 });
    send(program, { type: 'stdin', data: '\n' });
    await program.closed();
    expect(program.text('stdout')).to.match(/^37 101\r\n(\r\n)?11 55\r\n$/);
  });

  it('says the id of the execution and how long it ran', async () => {
    const program = await client.open(runnerId, 'echo $SERAI_EXECUTION; sleep 0.3', {}, SERAI_V1);
    await program.closed();
    const [start, , end] = program.messages;
    expect(start).to.deep.equal({ type: 'start', executionId: program.text('stdout').trim() });
    expect(end).to.have.property('durationMs').that.is.within(250, 20_000);
  });
});
