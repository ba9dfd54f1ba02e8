import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../lib/base/errors.js';
import type { ExecutionRequest } from '../../lib/execution/api.js';
import type { Executions } from '../../lib/execution/executions.js';
import { TestRunner } from '../support/claimed-runner.js';
import type { Begun } from '../support/executions.js';
import { begin, executionRequest, startExecutions } from '../support/executions.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { PlayedExecs } from '../support/played-execs.js';

describe('Run', () => {
  let clock: FakeClock;
  let nomad: PlayedExecs;
  let runner: TestRunner;
  let executions: Executions;

  beforeEach(async () => {
    clock = new FakeClock();
    nomad = new PlayedExecs();
    runner = new TestRunner();
    executions = await startExecutions({ nomad, clock });
  });

  /** Ends what a test left running and checks that nothing of it stays. */
  afterEach(async () => {
    const stopped = executions.stop();
    await clock.advance(5000);
    await stopped;
    expect(executions.active).to.equal(0);
    expect(clock.armed).to.equal(0);
    expect(runner.activities).to.equal(0);
  });

  async function start(overrides: Partial<ExecutionRequest> = {}): Promise<Begun> {
    const begun = begin(executions, runner, executionRequest('true', overrides));
    await settle();
    return begun;
  }

  async function isSettled(promise: Promise<unknown>): Promise<boolean> {
    await settle();
    return Promise.race([promise.then(() => true), settle().then(() => false)]);
  }

  describe('with a terminal', () => {
    async function startInTerminal(overrides: Partial<ExecutionRequest> = {}): Promise<Begun> {
      const begun = await start(overrides);
      await nomad.control().say('stdout', `R 10 10 34816\nS ${nomad.control().token}\n`);
      await nomad.terminal().say('stdout', `noise${nomad.control().start()}`);
      await nomad.control().say('stderr', nomad.control().start());
      return begun;
    }

    it('sends nothing of the request by the URL or the terminal [B18]', async () => {
      await start({ environment: { SECRET: 'hush' }, command: 'echo private' });
      const told = nomad.execs.map(({ options }) => options.command.join(' ')).join(' ');
      expect(told).to.not.include('hush').and.to.not.include('private');
      expect(told.length).to.be.lessThan(1000);
      expect(nomad.terminal().input).to.equal('');
      expect(nomad.control().input).to.include('hush').and.to.include('private');
    });

    it('waits for the end of both streams, whatever comes first [A2-38]', async () => {
      const { run, sink } = await startInTerminal();
      const { token } = nomad.control();
      const signs: (() => Promise<void>)[] = [
        () => nomad.control().say('stdout', `X ${token} 3\n`),
        () => nomad.terminal().say('stdout', `out${nomad.control().stop()}late`),
        () => nomad.control().say('stderr', `err${nomad.control().stop()}late`),
      ];
      for (const sign of signs) {
        expect(await isSettled(run.exit)).to.equal(false);
        await sign();
      }
      expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 3 });
      expect([sink.stdout, sink.stderr]).to.deep.equal(['out', 'err']);
    });

    it('settles once with the code in every order of signs and ends [A2-39] [A2-63]', async () => {
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }), async (order) => {
          const { run, sink } = await startInTerminal();
          const [control, terminal] = [nomad.control(), nomad.terminal()];
          // The exit frame stands before any other sign only where the code is not known: those orders are lost ones.
          const code = order.indexOf(0);
          const lost = order.findIndex((sign) => sign >= 3);
          const signs: (() => Promise<void>)[] = [
            () => control.say('stdout', `X ${control.token} 0\n`),
            () => terminal.say('stdout', `out${control.stop()}`),
            () => control.say('stderr', control.stop()),
            () => control.close(1006),
            () => terminal.exit(137),
            () => terminal.close(1000),
          ];
          for (const sign of order) await signs[sign]?.();
          await clock.advance(1000);
          const exit = await run.exit;
          expect(exit.kind).to.equal(code < lost ? 'exited' : 'failed');
          expect(sink.events.filter((event) => event === 'started')).to.have.length(1);
          await clock.advance(3000);
        }),
        { numRuns: 60 },
      );
    });

    it('gives the known code where a stopped terminal keeps its end back', async () => {
      const { run, sink } = await startInTerminal();
      await nomad.terminal().say('stdout', 'half');
      await nomad.control().say('stderr', nomad.control().stop());
      await nomad.control().say('stdout', `X ${nomad.control().token} 9\n`);
      await clock.advance(999);
      expect(await isSettled(run.exit)).to.equal(false);
      await clock.advance(1);
      expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 9 });
      expect(sink.stdout).to.equal('half');
    });

    it('does not count that second while output comes, or while the client does not read [A2-59]', async () => {
      const { run, sink } = await startInTerminal();
      await nomad.control().say('stderr', nomad.control().stop());
      await nomad.control().say('stdout', `X ${nomad.control().token} 9\n`);
      await clock.advance(900);
      await nomad.terminal().say('stdout', 'more');
      await clock.advance(900);
      sink.room = false;
      await nomad.terminal().say('stdout', 'yet more');
      await clock.advance(60_000);
      expect(await isSettled(run.exit)).to.equal(false);
      sink.drain();
      await settle();
      await nomad.terminal().say('stdout', `!${nomad.control().stop()}`);
      expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 9 });
      expect(sink.stdout).to.equal('moreyet more!');
    });

    it('stops reading both execs while the client does not read', async () => {
      const { sink } = await startInTerminal();
      sink.room = false;
      await nomad.terminal().say('stdout', 'much');
      expect(nomad.execs.map(({ paused }) => paused)).to.deep.equal([true, true]);
      await nomad.control().say('stderr', 'was under way');
      expect(sink.drainsAwaited).to.equal(1);
      sink.drain();
      await settle();
      expect(nomad.execs.map(({ paused }) => paused)).to.deep.equal([false, false]);
    });

    it('takes a control line of another token for nothing', async () => {
      const { run } = await startInTerminal();
      await nomad.control().say('stdout', 'X 1234 0\nS 99\nE 1234 user\nnonsense\n');
      expect(await isSettled(run.exit)).to.equal(false);
    });

    it('passes input on once the command began, in order, and types the end of input', async () => {
      const { run } = await start();
      const writes = [run.write(Buffer.from('a')), run.write(Buffer.from('b'))];
      run.closeStdin();
      run.resize(100, 30);
      await settle();
      expect(nomad.terminal().input).to.equal('');
      await nomad.control().say('stdout', `S ${nomad.control().token}\n`);
      await Promise.all(writes);
      expect(nomad.terminal().input).to.equal('ab\x04');
      expect(nomad.terminal().sizes).to.deep.equal([[100, 30]]);
    });

    it('closes its session behind the answer, by the end of the control input', async () => {
      const { run } = await startInTerminal();
      const [control, terminal] = [nomad.control(), nomad.terminal()];
      await terminal.say('stdout', control.stop());
      await control.say('stderr', control.stop());
      await control.say('stdout', `X ${control.token} 0\n`);
      await run.exit;
      await settle();
      expect([control.inputClosed, control.destroyed]).to.deep.equal([true, false]);
      expect(executions.active).to.equal(1);
      await control.exit(0);
      expect([control.destroyed, terminal.destroyed]).to.deep.equal([true, true]);
      expect(executions.active).to.equal(0);
      expect(nomad.kills).to.deep.equal([]);
    });

    it('says why a runner without room refuses, although that came before the question [A2-58]', async () => {
      const { run } = begin(executions, runner, executionRequest('true'));
      const opening = nomad.hold();
      opening.open();
      await settle();
      await nomad.control().say('stdout', 'E - folder\n');
      await nomad.control().exit(0);
      expect(await run.exit).to.deep.include({ kind: 'failed' });
      expect(JSON.stringify(await run.exit)).to.include('/tmp');
    });
  });

  describe('without a terminal', () => {
    async function startInPipe(overrides: Partial<ExecutionRequest> = {}): Promise<Begun> {
      const begun = await start({ interactive: false, ...overrides });
      await nomad.pipe().say('stdout', `R 10 10 0\n${nomad.pipe().start()}`);
      await nomad.pipe().say('stderr', nomad.pipe().start());
      return begun;
    }

    it('ends with the code behind the end marker, although the exec goes on [B13]', async () => {
      const { run, sink } = await startInPipe();
      const pipe = nomad.pipe();
      await pipe.say('stderr', `e${pipe.stop()}`);
      const end = `o${pipe.stop()}42\n`;
      for (const byte of end) await pipe.say('stdout', byte);
      expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 42 });
      await pipe.say('stdout', 'late output of a child');
      expect([sink.stdout, sink.stderr]).to.deep.equal(['o', 'e']);
    });

    for (const [name, lose] of [
      ['an exit frame', () => nomad.pipe().exit(0)],
      ['a close with 1000', () => nomad.pipe().close(1000)],
      ['a reset', () => nomad.pipe().close(1006)],
    ] as const) {
      it(`is no exit where ${name} comes without a code [A2-40]`, async () => {
        const { run, sink } = await startInPipe();
        await nomad.pipe().say('stdout', 'part');
        await lose();
        expect(await run.exit).to.deep.equal({
          kind: 'failed',
          message: 'the connection to the command was lost',
        });
        expect(sink.stdout).to.equal('part');
        expect(runner.questions).to.deep.equal([500]);
        await settle();
        expect(nomad.kills).to.have.length(1);
      });
    }

    it('joins characters that are cut between chunks, on each stream by itself [A2-52] [B1]', async () => {
      const { run, sink } = await startInPipe();
      const pipe = nomad.pipe();
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
      const pipe = nomad.pipe();
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
          const pipe = nomad.pipe();
          for (const chunk of chunks) await pipe.say('stdout', Buffer.from(chunk));
          await pipe.say('stderr', pipe.stop());
          await pipe.say('stdout', `${pipe.stop()}0\n`);
          await run.exit;
          expect(sink.stdout).to.equal(Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))).toString());
          await clock.advance(2000);
        }),
        { numRuns: 60 },
      );
    });

    it('leaves the input open until the end of input is told', async () => {
      const { run } = await startInPipe();
      await run.write(Buffer.from('text'));
      expect(nomad.pipe().input.endsWith('text')).to.equal(true);
      expect(nomad.pipe().inputClosed).to.equal(false);
      run.closeStdin();
      await settle();
      expect(nomad.pipe().inputClosed).to.equal(true);
    });

    it('ends at its time limit at once, with all that came before, and then ends the processes [A2-61]', async () => {
      const { run, sink } = await startInPipe({ timeLimitSeconds: 2 });
      await nomad.pipe().say('stdout', 'a\x1d');
      await clock.advance(1999);
      expect(await isSettled(run.exit)).to.equal(false);
      await clock.advance(1);
      expect(await run.exit).to.deep.equal({ kind: 'time-limit' });
      expect(sink.stdout).to.equal('a\x1d');
      await nomad.pipe().say('stdout', 'Killed');
      expect(sink.stdout).to.equal('a\x1d');
      expect(nomad.kills).to.have.length(1);
      expect(runner.abandoned).to.deep.equal([]);
    });

    it('ends a command at the first byte beyond its output limit, and then its processes', async () => {
      const { run, sink } = await startInPipe({ outputLimitBytes: 10 });
      await nomad.pipe().say('stdout', 'out');
      await nomad.pipe().say('stderr', 'error €');
      expect(await run.exit).to.deep.equal({ kind: 'output-limit' });
      expect([sink.stdout, sink.stderr]).to.deep.equal(['out', 'error ']);
      await nomad.pipe().say('stdout', 'more');
      expect(sink.stdout).to.equal('out');
      await settle();
      expect(nomad.kills).to.have.length(1);
      expect(runner.abandoned).to.deep.equal([]);
    });

    it('lets a command print exactly as much as its output limit', async () => {
      const { run, sink } = await startInPipe({ outputLimitBytes: 7 });
      const pipe = nomad.pipe();
      await pipe.say('stderr', `err${pipe.stop()}`);
      await pipe.say('stdout', `out\x1d${pipe.stop()}0\n`);
      expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
      expect([sink.stdout, sink.stderr]).to.deep.equal(['out\x1d', 'err']);
    });

    it('counts what was kept back as a possible end', async () => {
      const { run, sink } = await startInPipe({ outputLimitBytes: 3, timeLimitSeconds: 2 });
      await nomad.pipe().say('stdout', 'out\x1d');
      expect(await isSettled(run.exit)).to.equal(false);
      await clock.advance(2000);
      expect(await run.exit).to.deep.equal({ kind: 'output-limit' });
      expect(sink.stdout).to.equal('out');
    });

    it('takes the configured output limit where the request names none', async () => {
      await executions.stop();
      executions = await startExecutions({ nomad, clock, execution: { outputLimit: 2 } });
      const limited = await startInPipe();
      await nomad.pipe().say('stdout', 'out');
      expect(await limited.run.exit).to.deep.equal({ kind: 'output-limit' });
      const free = await startInPipe({ outputLimitBytes: 0 });
      await nomad.pipe().say('stdout', 'out');
      expect(await isSettled(free.run.exit)).to.equal(false);
    });

    it('counts the time limit from the start of the command', async () => {
      const { run } = await start({ interactive: false, timeLimitSeconds: 2 });
      await clock.advance(10_000);
      await nomad.pipe().say('stdout', nomad.pipe().start());
      await clock.advance(1999);
      expect(await isSettled(run.exit)).to.equal(false);
    });

    it('ends the processes of a client that left [A2-51] [B11]', async () => {
      const { run, id } = await startInPipe();
      run.hangUp();
      run.hangUp();
      expect(await run.exit).to.deep.equal({ kind: 'hang-up' });
      await settle();
      expect(nomad.kills).to.have.length(1);
      expect(nomad.kills[0]?.input).to.include(`serai_id='${id}'`).and.to.include(`serai_roots='10 10 0'`);
    });

    it('gives up a runner in which something survives, or where nobody can look [A2-47]', async () => {
      for (const result of ['K 1 0\n', undefined]) {
        runner = new TestRunner();
        nomad.killResult = result;
        const { run } = await startInPipe();
        run.hangUp();
        await clock.advance(2000);
        expect(runner.abandoned).to.deep.equal(['not-killable']);
      }
    });

    it('tries again where an exec for ending the processes cannot be opened', async () => {
      const { run } = await startInPipe();
      nomad.failure = new ServiceError('NOMAD_OVERLOADED', 'too many connections');
      run.hangUp();
      await clock.advance(1000);
      nomad.failure = undefined;
      await clock.advance(100);
      expect(nomad.kills).to.have.length(1);
      expect(runner.abandoned).to.deep.equal([]);
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
          runner.news = news;
          const { run } = await startInPipe();
          const pipe = nomad.pipe();
          await pipe.say('stderr', pipe.stop());
          await pipe.say('stdout', `${pipe.stop()}${code}\n`);
          expect(await run.exit).to.deep.equal(expected[news]);
          await clock.advance(2000);
        }
        expect(nomad.kills).to.deep.equal([]);
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
        runner = new TestRunner();
        const { run } = await startInPipe();
        runner.leave(reason);
        expect(await run.exit).to.deep.equal(expected[reason]);
        await settle();
        expect(nomad.pipe().destroyed).to.equal(true);
        expect(runner.activities).to.equal(0);
      }
      expect(nomad.kills).to.deep.equal([]);
    });
  });

  describe('that does not start', () => {
    it('ends after 15 s, whether Nomad or the runner is silent', async () => {
      const held = nomad.hold();
      const silent = await start();
      await clock.advance(15_000);
      expect(await silent.run.exit).to.deep.equal({
        kind: 'failed',
        message: 'the runner did not start the command in time',
      });
      nomad.opening = undefined;
      held.open();
      const { run } = await start({ interactive: false });
      await clock.advance(15_000);
      expect(await run.exit).to.deep.include({ kind: 'failed' });
    });

    it('tells a failure of Nomad by a sentence of its own [A2-50]', async () => {
      nomad.failure = new ServiceError('NOMAD_REJECTED', 'secret text of Nomad');
      const { run, sink } = await start();
      expect(await run.exit).to.deep.equal({
        kind: 'failed',
        message: 'the command could not be started in the runner',
      });
      expect(sink.events).to.deep.equal([]);
    });

    it('ends in order what was being opened when the client left [A2-50]', async () => {
      const held = nomad.hold();
      const { run } = await start();
      run.hangUp();
      expect(await run.exit).to.deep.equal({ kind: 'hang-up' });
      held.open();
      await settle();
      expect(nomad.execs.map(({ inputClosed }) => inputClosed)).to.include(true);
      await clock.advance(1000);
      expect(nomad.execs.map(({ destroyed }) => destroyed)).to.deep.equal([true, true]);
      expect(nomad.kills).to.deep.equal([]);
    });

    it('drops the other exec where one cannot be opened', async () => {
      let calls = 0;
      const open = nomad.openExec.bind(nomad);
      nomad.openExec = (options) => {
        calls += 1;
        if (calls === 2) return Promise.reject(new ServiceError('NOMAD_OVERLOADED', 'no'));
        return open(options);
      };
      const { run } = await start();
      await clock.advance(1000);
      expect(await run.exit).to.deep.equal({ kind: 'failed', message: 'Nomad is overloaded, try again' });
      expect(nomad.execs.map(({ destroyed }) => destroyed)).to.deep.equal([true]);
    });

    it('names an image that cannot drop privileges, and reports the environment [A4-87]', async () => {
      const unfit: string[] = [];
      await executions.stop();
      executions = await startExecutions({
        nomad,
        clock,
        onUnfit: (_environment, reason) => unfit.push(reason),
      });
      const { run } = await start({ interactive: false });
      await nomad.pipe().say('stdout', `R 1 1 0\nE ${nomad.pipe().token} no-drop\n`);
      const exit = await run.exit;
      expect(exit).to.deep.equal({ kind: 'failed', message: unfit[0] });
      expect(unfit[0]).to.include('setpriv');
    });
  });
});
