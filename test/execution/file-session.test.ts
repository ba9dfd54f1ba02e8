import { expect } from 'chai';
import { openFileSession } from '../../lib/execution/file-session.js';
import type { CommandEnd, CommandSession } from '../../lib/execution/session.js';
import { failureOf } from '../support/failures.js';
import { TestRunner } from '../support/claimed-runner.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import type { PlayedExec } from '../support/played-execs.js';
import { PlayedExecs } from '../support/played-execs.js';
import { fileRequest } from './support/file-sessions.js';
import { isSettled } from './support/stage.js';

/** The protocol of a file session, its exec played by the test. */
describe('a file session', () => {
  let clock: FakeClock;
  let exec: PlayedExec;
  let session: CommandSession;
  let token: string;
  let output: string;

  beforeEach(async () => {
    clock = new FakeClock();
    const nomad = new PlayedExecs();
    const runner = new TestRunner();
    const { signal } = new AbortController();
    const options = { runner, folder: '/tmp/.serai-x', keep: true, sweeping: undefined, signal };
    session = await openFileSession({ nomad, clock }, options);
    exec = nomad.pipe();
    output = '';
  });

  afterEach(async () => {
    const closed = session.close();
    await clock.advance(1000);
    await closed;
    expect(exec.destroyed).to.equal(true);
    expect(clock.armed).to.equal(0);
  });

  const ready = (): Promise<void> => exec.say('stdout', 'R 10 10 0\n');
  const start = (): Promise<void> => exec.say('stdout', `\x1d${token}0`);
  const end = (code = 0): Promise<void> => exec.say('stdout', `\x1d${token}1X ${token} ${code}\n`);
  const idle = (word = 'clean'): Promise<void> => exec.say('stdout', `I ${token} ${word}\n`);

  function run(input?: Buffer): Promise<CommandEnd> {
    const request = fileRequest({ command: 'a call', ...(input && { input }) });
    token = request.token;
    return session.run(request, {
      started: () => undefined,
      output: (_stream, bytes) => (output += bytes.toString()),
      user: () => undefined,
    });
  }

  it('is clean before its first command once the loop came up, and keeps a request back until then', async () => {
    const running = run();
    await settle();
    expect(exec.input).not.to.include(token);
    await ready();
    expect(exec.input).to.include(`#${token} `);
    expect(session.root).to.deep.equal({ pid: 10, session: 10, terminal: 0 });
    await start();
    await end(3);
    expect(await running).to.deep.equal({ kind: 'exited', exitCode: 3 });
  });

  it('says that it is ready, without a command', async () => {
    const told = session.settle();
    expect(await isSettled(told)).to.equal(false);
    await ready();
    expect(await told).to.equal('clean');
  });

  it('is spent where the loop does not come up', async () => {
    const silent = session.settle();
    await clock.advance(2000);
    expect(await silent).to.equal('spent');
    await exec.say('stdout', 'E - tools\n');
    expect(await run()).to.deep.equal({ kind: 'refused', refusal: 'tools' });
    expect(await session.settle()).to.equal('spent');
  });

  it('serves one command after the other, as long as it is told to be clean', async () => {
    await ready();
    for (const word of ['clean', 'clean', 'suspect']) {
      output = '';
      const running = run();
      await start();
      await exec.say('stdout', `I ${token} clean\nX ${token} 1\n`); // a text that only looks so
      await end();
      expect(await running).to.deep.equal({ kind: 'exited', exitCode: 0 });
      expect(output).to.equal(`I ${token} clean\nX ${token} 1\n`);
      const told = session.settle();
      await exec.say('stdout', 'I 1 clean\n');
      expect(await isSettled(told)).to.equal(false);
      await idle(word);
      expect(await told).to.equal(word);
    }
  });

  it('asks again after it was suspect', async () => {
    await ready();
    const running = run(Buffer.from('x'));
    await start();
    await session.write(Buffer.from('x'));
    await end();
    await running;
    const first = session.settle();
    await idle('suspect');
    expect(await first).to.equal('suspect');
    const before = exec.input;
    for (const word of ['suspect', 'clean']) {
      const again = session.settle();
      expect(await isSettled(again)).to.equal(false);
      await idle(word);
      expect(await again).to.equal(word);
    }
    expect(exec.input).to.equal(`${before}${`${token} again -\n`.repeat(2)}`);
  });

  it('can go on after a command that was refused', async () => {
    await ready();
    const running = run(Buffer.from('input'));
    await exec.say('stdout', `E ${token} user\n`);
    expect(await running).to.deep.equal({ kind: 'refused', refusal: 'user' });
    const told = session.settle();
    expect(exec.input.endsWith(`over ${token}\n`)).to.equal(true);
    await idle();
    expect(await told).to.equal('clean');
  });

  it('is spent where it hears nothing for two seconds, or its exec ends', async () => {
    await ready();
    const first = run();
    await start();
    await end();
    await first;
    const told = session.settle();
    await clock.advance(1999);
    expect(await isSettled(told)).to.equal(false);
    await clock.advance(1);
    expect(await told).to.equal('spent');
    const second = run();
    await start();
    await exec.exit(0);
    expect((await second).kind).to.equal('lost');
    expect(await session.settle()).to.equal('spent');
    expect((await run()).kind).to.equal('lost');
  });

  it('sends exactly as much input as it announced, and then that it is over', async () => {
    await ready();
    const running = run(Buffer.from('12345'));
    await start();
    await session.write(Buffer.from('123'));
    const before = exec.input;
    expect(await failureOf(session.write(Buffer.from('456')))).to.be.instanceOf(RangeError);
    expect(exec.input).to.equal(before);
    await session.write(Buffer.from('45'));
    await end();
    await running;
    const told = session.settle();
    expect(exec.input).to.equal(`${before}45over ${token}\n`);
    await idle();
    expect(await told).to.equal('clean');
  });

  it('is spent after a command that ended before all of its input was sent', async () => {
    await ready();
    const running = run(Buffer.from('12345'));
    await start();
    await session.write(Buffer.from('123'));
    await end();
    await running;
    expect(await session.settle()).to.equal('spent');
    await session.write(Buffer.from('45'));
    expect(exec.input.endsWith('123')).to.equal(true);
  });
});
