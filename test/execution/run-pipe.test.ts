import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../lib/base/errors.js';
import type { ExecutionRequest } from '../../lib/execution/api.js';
import { TestRunner } from '../support/claimed-runner.js';
import type { Begun } from '../support/executions.js';
import { settle } from '../support/fake-clock.js';
import type { Stage } from './support/stage.js';
import { isSettled, openStage } from './support/stage.js';

describe('Run without a terminal', () => {
  let stage: Stage;

  beforeEach(async () => {
    stage = await openStage();
  });

  afterEach(() => stage.close());

  async function startInPipe(overrides: Partial<ExecutionRequest> = {}): Promise<Begun> {
    const begun = await stage.start({ interactive: false, ...overrides });
    await stage.nomad.pipe().say('stdout', `R 10 10 0\n${stage.nomad.pipe().start()}`);
    await stage.nomad.pipe().say('stderr', stage.nomad.pipe().start());
    return begun;
  }

  it('ends with the code behind the end marker, although the exec goes on [B13]', async () => {
    const { run, sink } = await startInPipe();
    const pipe = stage.nomad.pipe();
    await pipe.say('stderr', `e${pipe.stop()}`);
    const end = `o${pipe.stop()}42\n`;
    for (const byte of end) await pipe.say('stdout', byte);
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 42 });
    await pipe.say('stdout', 'late output of a child');
    expect([sink.stdout, sink.stderr]).to.deep.equal(['o', 'e']);
  });

  for (const [name, lose] of [
    ['an exit frame', () => stage.nomad.pipe().exit(0)],
    ['a close with 1000', () => stage.nomad.pipe().close(1000)],
    ['a reset', () => stage.nomad.pipe().close(1006)],
  ] as const) {
    it(`is no exit where ${name} comes without a code [A2-40]`, async () => {
      const { run, sink } = await startInPipe();
      await stage.nomad.pipe().say('stdout', 'part');
      await lose();
      expect(await run.exit).to.deep.equal({
        kind: 'failed',
        message: 'the connection to the command was lost',
      });
      expect(sink.stdout).to.equal('part');
      expect(stage.runner.questions).to.deep.equal([500]);
      await settle();
      expect(stage.nomad.kills).to.have.length(1);
    });
  }

  it('joins characters that are cut between chunks, on each stream by itself [A2-52] [B1]', async () => {
    const { run, sink } = await startInPipe();
    const pipe = stage.nomad.pipe();
    for (const byte of Buffer.from('€😀')) {
      await pipe.say('stdout', Buffer.from([byte]));
      await pipe.say('stderr', Buffer.from([byte]));
    }
    await pipe.say('stderr', pipe.stop());
    await pipe.say('stdout', Buffer.concat([Buffer.from([0xe2, 0x82]), Buffer.from(`${pipe.stop()}0\n`)]));
    await run.exit;
    expect([sink.stdout, sink.stderr]).to.deep.equal(['€😀\ufffd', '€😀']);
  });

  it('changes no line end, wherever it is cut [A2-55] [A2-56]', async () => {
    const { run, sink } = await startInPipe();
    const pipe = stage.nomad.pipe();
    for (const part of ['a\r', '\nb\n', '\rc', `\r\n${pipe.stop()}`]) await pipe.say('stdout', part);
    await pipe.say('stderr', pipe.stop());
    await pipe.say('stdout', '0\n');
    await run.exit;
    expect(sink.stdout).to.equal('a\r\nb\n\rc\r\n');
  });

  it('makes bytes that are no UTF-8 into replacement characters, however they are cut [A2-54]', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 5 }), { maxLength: 6 }), async (chunks) => {
        const { run, sink } = await startInPipe();
        const pipe = stage.nomad.pipe();
        for (const chunk of chunks) await pipe.say('stdout', Buffer.from(chunk));
        await pipe.say('stderr', pipe.stop());
        await pipe.say('stdout', `${pipe.stop()}0\n`);
        await run.exit;
        expect(sink.stdout).to.equal(Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))).toString());
        await stage.clock.advance(2000);
      }),
      { numRuns: 60 },
    );
  });

  it('leaves the input open until the end of input is told', async () => {
    const { run } = await startInPipe();
    await run.write(Buffer.from('text'));
    expect(stage.nomad.pipe().input.endsWith('text')).to.equal(true);
    expect(stage.nomad.pipe().inputClosed).to.equal(false);
    run.closeStdin();
    await settle();
    expect(stage.nomad.pipe().inputClosed).to.equal(true);
  });

  it('ends at its time limit at once, with all that came before, and then ends the processes [A2-61]', async () => {
    const { run, sink } = await startInPipe({ timeLimitSeconds: 2 });
    await stage.nomad.pipe().say('stdout', 'a\x1d');
    await stage.clock.advance(1999);
    expect(await isSettled(run.exit)).to.equal(false);
    await stage.clock.advance(1);
    expect(await run.exit).to.deep.equal({ kind: 'time-limit' });
    expect(sink.stdout).to.equal('a\x1d');
    await stage.nomad.pipe().say('stdout', 'Killed');
    expect(sink.stdout).to.equal('a\x1d');
    expect(stage.nomad.kills).to.have.length(1);
    expect(stage.runner.abandoned).to.deep.equal([]);
  });

  it('ends a command at the first byte beyond its output limit, and then its processes', async () => {
    const { run, sink } = await startInPipe({ outputLimitBytes: 10 });
    await stage.nomad.pipe().say('stdout', 'out');
    await stage.nomad.pipe().say('stderr', 'error €');
    expect(await run.exit).to.deep.equal({ kind: 'output-limit' });
    expect([sink.stdout, sink.stderr]).to.deep.equal(['out', 'error ']);
    await stage.nomad.pipe().say('stdout', 'more');
    expect(sink.stdout).to.equal('out');
    await settle();
    expect(stage.nomad.kills).to.have.length(1);
    expect(stage.runner.abandoned).to.deep.equal([]);
  });

  it('lets a command print exactly as much as its output limit', async () => {
    const { run, sink } = await startInPipe({ outputLimitBytes: 7 });
    const pipe = stage.nomad.pipe();
    await pipe.say('stderr', `err${pipe.stop()}`);
    await pipe.say('stdout', `out\x1d${pipe.stop()}0\n`);
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
    expect([sink.stdout, sink.stderr]).to.deep.equal(['out\x1d', 'err']);
  });

  it('counts what was kept back as a possible end', async () => {
    const { run, sink } = await startInPipe({ outputLimitBytes: 3, timeLimitSeconds: 2 });
    await stage.nomad.pipe().say('stdout', 'out\x1d');
    expect(await isSettled(run.exit)).to.equal(false);
    await stage.clock.advance(2000);
    expect(await run.exit).to.deep.equal({ kind: 'output-limit' });
    expect(sink.stdout).to.equal('out');
  });

  it('takes the configured output limit where the request names none', async () => {
    await stage.close();
    stage = await openStage({ outputLimit: 2 });
    const limited = await startInPipe();
    await stage.nomad.pipe().say('stdout', 'out');
    expect(await limited.run.exit).to.deep.equal({ kind: 'output-limit' });
    const free = await startInPipe({ outputLimitBytes: 0 });
    await stage.nomad.pipe().say('stdout', 'out');
    expect(await isSettled(free.run.exit)).to.equal(false);
  });

  it('counts the time limit from the start of the command', async () => {
    const { run } = await stage.start({ interactive: false, timeLimitSeconds: 2 });
    await stage.clock.advance(10_000);
    await stage.nomad.pipe().say('stdout', stage.nomad.pipe().start());
    await stage.clock.advance(1999);
    expect(await isSettled(run.exit)).to.equal(false);
  });

  it('ends the processes of a client that left [A2-51] [B11]', async () => {
    const { run, id } = await startInPipe();
    run.hangUp();
    run.hangUp();
    expect(await run.exit).to.deep.equal({ kind: 'hang-up' });
    await settle();
    expect(stage.nomad.kills).to.have.length(1);
    expect(stage.nomad.kills[0]?.input)
      .to.include(`serai_id='${id}'`)
      .and.to.include(`serai_roots='10 10 0'`);
  });

  it('gives up a runner in which something survives, or where nobody can look [A2-47]', async () => {
    for (const result of ['K 1 0\n', undefined]) {
      stage.runner = new TestRunner();
      stage.nomad.killResult = result;
      const { run } = await startInPipe();
      run.hangUp();
      await stage.clock.advance(2000);
      expect(stage.runner.abandoned).to.deep.equal(['not-killable']);
    }
  });

  it('tries again where an exec for ending the processes cannot be opened', async () => {
    const { run } = await startInPipe();
    stage.nomad.failure = new ServiceError('NOMAD_OVERLOADED', 'too many connections');
    run.hangUp();
    await stage.clock.advance(1000);
    stage.nomad.failure = undefined;
    await stage.clock.advance(100);
    expect(stage.nomad.kills).to.have.length(1);
    expect(stage.runner.abandoned).to.deep.equal([]);
  });

  for (const code of [137, 128]) {
    it(`asks Nomad before it passes on ${code} [A2-46]`, async () => {
      const expected = {
        alive: { kind: 'exited', exitCode: code },
        'out-of-memory': { kind: 'out-of-memory' },
        restarted: { kind: 'failed', message: 'the runner was lost while the command ran' },
        gone: { kind: 'failed', message: 'the runner was lost while the command ran' },
      } as const;
      for (const news of ['alive', 'out-of-memory', 'restarted', 'gone'] as const) {
        stage.runner.news = news;
        const { run } = await startInPipe();
        const pipe = stage.nomad.pipe();
        await pipe.say('stderr', pipe.stop());
        await pipe.say('stdout', `${pipe.stop()}${code}\n`);
        expect(await run.exit).to.deep.equal(expected[news]);
        await stage.clock.advance(2000);
      }
      expect(stage.nomad.kills).to.deep.equal([]);
    });
  }

  it('tells of a runner that goes, and talks to it no more [A2-65]', async () => {
    const expected = {
      inactive: { kind: 'inactive' },
      'out-of-memory': { kind: 'out-of-memory' },
      returned: { kind: 'failed', message: 'the runner was returned while the command ran' },
      'allocation-lost': { kind: 'failed', message: 'the runner was lost while the command ran' },
    } as const;
    for (const reason of ['inactive', 'out-of-memory', 'returned', 'allocation-lost'] as const) {
      stage.runner = new TestRunner();
      const { run } = await startInPipe();
      stage.runner.leave(reason);
      expect(await run.exit).to.deep.equal(expected[reason]);
      await settle();
      expect(stage.nomad.pipe().destroyed).to.equal(true);
      expect(stage.runner.activities).to.equal(0);
    }
    expect(stage.nomad.kills).to.deep.equal([]);
  });
});
