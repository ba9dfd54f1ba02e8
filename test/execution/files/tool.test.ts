import { expect } from 'chai';
import { hasCode, ServiceError } from '../../../lib/base/errors.js';
import { systemRandomness } from '../../../lib/base/ids.js';
import { silentLogger } from '../../../lib/base/log.js';
import { FileTransfers } from '../../../lib/execution/files/transfers.js';
import { ColdSessions } from '../../../lib/execution/cold-sessions.js';
import { RunnerBooks } from '../../../lib/execution/runner-books.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { EXECUTION_CONFIG, STEADY_PULSE, testFolders } from '../../support/executions.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import type { PlayedExec } from '../../support/played-execs.js';
import { PlayedExecs } from '../../support/played-execs.js';

const NEVER = new AbortController().signal;

/** File transfers over execs that the test plays: what a runner or Nomad can do wrong. */
describe('file transfers', () => {
  let clock: FakeClock;
  let nomad: PlayedExecs;
  let runner: TestRunner;
  let books: RunnerBooks;
  let files: FileTransfers;

  beforeEach(async () => {
    clock = new FakeClock();
    nomad = new PlayedExecs();
    runner = new TestRunner();
    const shared = { nomad, clock, log: silentLogger, pulse: STEADY_PULSE };
    books = new RunnerBooks({ ...shared, stopSignal: NEVER });
    files = new FileTransfers({
      ...shared,
      books,
      sessions: new ColdSessions({ ...shared, folders: testFolders() }),
      randomness: systemRandomness,
      config: { execution: EXECUTION_CONFIG, runner: { user: 'user' } },
    });
    await files.start();
  });

  afterEach(async () => {
    const stopped = files.stop();
    await clock.advance(5000);
    await stopped;
    expect(runner.activities).to.equal(0);
    expect(clock.armed).to.equal(0);
  });

  /** The outcome of a call, for a look at it later. */
  function outcomeOf<T>(work: Promise<T>): { value?: T; error?: unknown } {
    const outcome: { value?: T; error?: unknown } = {};
    work.then(
      (value) => (outcome.value = value),
      (error: unknown) => (outcome.error = error),
    );
    return outcome;
  }

  async function begun(): Promise<PlayedExec> {
    await settle();
    const pipe = nomad.pipe();
    await pipe.say('stdout', 'R 10 10 0\n');
    await pipe.say('stdout', pipe.start());
    return pipe;
  }

  async function ended(pipe: PlayedExec, exitCode: number): Promise<void> {
    await pipe.say('stdout', `${pipe.stop()}X ${pipe.token} ${exitCode}\n`);
  }

  const update = (): Promise<void> =>
    files.update(runner, {
      removals: [],
      files: [{ path: 'a', sizeBytes: 1, bytes: () => one('x') }],
      requestSignal: NEVER,
    });
  const read = (): ReturnType<FileTransfers['read']> =>
    files.read(runner, { path: 'a', privileged: false, requestSignal: NEVER });

  it('fails, and gives the runner up, where a copy never ends [A2-42]', async () => {
    const outcome = outcomeOf(update());
    const pipe = await begun();
    expect(pipe.input.endsWith('\0'.repeat(1024))).to.equal(true);
    await clock.advance(60_000);
    expect(hasCode(outcome.error, 'EXECUTION_FAILED')).to.equal(true);
    expect(runner.abandoned).to.deep.equal(['not-killable']);
  });

  it('fails where the runner does not answer at all', async () => {
    nomad.hold();
    const outcome = outcomeOf(read());
    await clock.advance(15_000);
    expect(hasCode(outcome.error, 'EXECUTION_FAILED')).to.equal(true);
  });

  it('answers RUNNER_GONE as soon as the runner goes', async () => {
    const outcome = outcomeOf(update());
    await begun();
    runner.leave('returned');
    await settle();
    expect(hasCode(outcome.error, 'RUNNER_GONE')).to.equal(true);
    expect(books.size).to.equal(0);
  });

  it('never takes a copy for done that broke off, whatever the exec says', async () => {
    for (const breakOff of [
      (pipe: PlayedExec) => ended(pipe, 0),
      (pipe: PlayedExec) => pipe.exit(0),
      (pipe: PlayedExec) => pipe.close(1000),
      (pipe: PlayedExec) => pipe.close(1006),
    ]) {
      const outcome = outcomeOf(update());
      const pipe = await begun();
      await breakOff(pipe);
      await clock.advance(1000);
      expect(hasCode(outcome.error, 'EXECUTION_FAILED')).to.equal(true);
    }
  });

  it('never takes a listing for empty that could not be made', async () => {
    const outcome = outcomeOf(
      files.list(runner, { path: './', recursive: true, privileged: false, requestSignal: NEVER }),
    );
    await ended(await begun(), 2);
    await settle();
    expect(hasCode(outcome.error, 'EXECUTION_FAILED')).to.equal(true);
  });

  it('says that Nomad cannot be reached where that is so', async () => {
    nomad.failure = new ServiceError('NOMAD_UNREACHABLE', 'Nomad cannot be reached');
    const outcome = outcomeOf(read());
    await settle();
    expect(hasCode(outcome.error, 'NOMAD_UNREACHABLE')).to.equal(true);
  });

  it('says RUNNER_GONE where Nomad says that the runner died under an exec', async () => {
    runner.news = 'restarted';
    const outcome = outcomeOf(update());
    const pipe = await begun();
    await pipe.exit(137);
    await clock.advance(1000);
    expect(hasCode(outcome.error, 'RUNNER_GONE')).to.equal(true);
  });

  it('throws rather than end a download early whose file became shorter', async () => {
    const outcome = outcomeOf(read());
    const pipe = await begun();
    await pipe.say('stdout', '10\nabc');
    const content = outcome.value;
    expect(content?.sizeBytes).to.equal(10);
    await ended(pipe, 0);
    const chunks: string[] = [];
    let thrown: unknown;
    try {
      for await (const chunk of content?.bytes ?? []) chunks.push(chunk.toString());
    } catch (error) {
      thrown = error;
    }
    expect(chunks).to.deep.equal(['abc']);
    expect(hasCode(thrown, 'EXECUTION_FAILED')).to.equal(true);
    await content?.[Symbol.asyncDispose]();
  });

  it('slows a download down for a slow client, and does not call that a hang [A3-79, A3-81]', async () => {
    const outcome = outcomeOf(read());
    const pipe = await begun();
    const block = Buffer.alloc(600_000, 'b');
    await pipe.say('stdout', `${3 * block.length}\n`);
    for (let sent = 0; sent < 3; sent += 1) await pipe.say('stdout', block);
    expect(pipe.paused).to.equal(true);
    await clock.advance(600_000);
    expect(runner.abandoned).to.deep.equal([]);
    let size = 0;
    const reading = (async () => {
      for await (const chunk of outcome.value?.bytes ?? []) size += chunk.length;
    })();
    await settle();
    expect(pipe.paused).to.equal(false);
    await ended(pipe, 0);
    await reading;
    expect(size).to.equal(3 * block.length);
    await outcome.value?.[Symbol.asyncDispose]();
  });

  it('ends what a client that leaves began', async () => {
    const leaving = new AbortController();
    const outcome = outcomeOf(
      files.read(runner, { path: 'a', privileged: false, requestSignal: leaving.signal }),
    );
    const pipe = await begun();
    await pipe.say('stdout', '10\nabc');
    leaving.abort();
    await outcome.value?.[Symbol.asyncDispose]();
    await settle();
    expect(nomad.kills.length).to.equal(1);
    await clock.advance(2000);
    expect(pipe.destroyed).to.equal(true);
  });
});

// eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
async function* one(text: string): AsyncIterable<Buffer> {
  yield Buffer.from(text);
}
