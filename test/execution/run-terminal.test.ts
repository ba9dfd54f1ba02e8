import { expect } from 'chai';
import fc from 'fast-check';
import type { ExecutionRequest } from '../../lib/execution/api.js';
import type { Begun } from '../support/executions.js';
import { begin, executionRequest } from '../support/executions.js';
import { settle } from '../support/fake-clock.js';
import type { Stage } from './support/stage.js';
import { isSettled, openStage } from './support/stage.js';

describe('Run with a terminal', () => {
  let stage: Stage;

  beforeEach(async () => {
    stage = await openStage();
  });

  afterEach(() => stage.close());

  async function startInTerminal(overrides: Partial<ExecutionRequest> = {}): Promise<Begun> {
    const begun = await stage.start(overrides);
    await stage.nomad.control().say('stdout', `R 10 10 34816\nS ${stage.nomad.control().token}\n`);
    await stage.nomad.terminal().say('stdout', `noise${stage.nomad.control().start()}`);
    await stage.nomad.control().say('stderr', stage.nomad.control().start());
    return begun;
  }

  it('sends nothing of the request by the URL or the terminal [B18]', async () => {
    await stage.start({ environment: { SECRET: 'hush' }, command: 'echo private' });
    const told = stage.nomad.execs.map(({ options }) => options.command.join(' ')).join(' ');
    expect(told).to.not.include('hush').and.to.not.include('private');
    expect(told.length).to.be.lessThan(1000);
    expect(stage.nomad.terminal().input).to.equal('');
    expect(stage.nomad.control().input).to.include('hush').and.to.include('private');
  });

  it('waits for the end of both streams, whatever comes first [A2-38]', async () => {
    const { run, sink } = await startInTerminal();
    const { token } = stage.nomad.control();
    const signs: (() => Promise<void>)[] = [
      () => stage.nomad.control().say('stdout', `X ${token} 3\n`),
      () => stage.nomad.terminal().say('stdout', `out${stage.nomad.control().stop()}late`),
      () => stage.nomad.control().say('stderr', `err${stage.nomad.control().stop()}late`),
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
        const [control, terminal] = [stage.nomad.control(), stage.nomad.terminal()];
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
        await stage.clock.advance(1000);
        const exit = await run.exit;
        expect(exit.kind).to.equal(code < lost ? 'exited' : 'failed');
        expect(sink.events.filter((event) => event === 'started')).to.have.length(1);
        await stage.clock.advance(3000);
      }),
      { numRuns: 60 },
    );
  });

  it('gives the known code where a stopped terminal keeps its end back', async () => {
    const { run, sink } = await startInTerminal();
    await stage.nomad.terminal().say('stdout', 'half');
    await stage.nomad.control().say('stderr', stage.nomad.control().stop());
    await stage.nomad.control().say('stdout', `X ${stage.nomad.control().token} 9\n`);
    await stage.clock.advance(999);
    expect(await isSettled(run.exit)).to.equal(false);
    await stage.clock.advance(1);
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 9 });
    expect(sink.stdout).to.equal('half');
  });

  it('does not count that second while output comes, or while the client does not read [A2-59]', async () => {
    const { run, sink } = await startInTerminal();
    await stage.nomad.control().say('stderr', stage.nomad.control().stop());
    await stage.nomad.control().say('stdout', `X ${stage.nomad.control().token} 9\n`);
    await stage.clock.advance(900);
    await stage.nomad.terminal().say('stdout', 'more');
    await stage.clock.advance(900);
    sink.room = false;
    await stage.nomad.terminal().say('stdout', 'yet more');
    await stage.clock.advance(60_000);
    expect(await isSettled(run.exit)).to.equal(false);
    sink.drain();
    await settle();
    await stage.nomad.terminal().say('stdout', `!${stage.nomad.control().stop()}`);
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 9 });
    expect(sink.stdout).to.equal('moreyet more!');
  });

  it('stops reading both execs while the client does not read', async () => {
    const { sink } = await startInTerminal();
    sink.room = false;
    await stage.nomad.terminal().say('stdout', 'much');
    expect(stage.nomad.execs.map(({ paused }) => paused)).to.deep.equal([true, true]);
    await stage.nomad.control().say('stderr', 'was under way');
    expect(sink.drainsAwaited).to.equal(1);
    sink.drain();
    await settle();
    expect(stage.nomad.execs.map(({ paused }) => paused)).to.deep.equal([false, false]);
  });

  it('takes a control line of another token for nothing', async () => {
    const { run } = await startInTerminal();
    await stage.nomad.control().say('stdout', 'X 1234 0\nS 99\nE 1234 user\nnonsense\n');
    expect(await isSettled(run.exit)).to.equal(false);
  });

  it('passes input on once the command began, in order, and types the end of input', async () => {
    const { run } = await stage.start();
    const writes = [run.write(Buffer.from('a')), run.write(Buffer.from('b'))];
    run.closeStdin();
    run.resize(100, 30);
    await settle();
    expect(stage.nomad.terminal().input).to.equal('');
    await stage.nomad.control().say('stdout', `S ${stage.nomad.control().token}\n`);
    await Promise.all(writes);
    expect(stage.nomad.terminal().input).to.equal('ab\x04');
    expect(stage.nomad.terminal().sizes).to.deep.equal([[100, 30]]);
  });

  it('closes its session behind the answer, by the end of the control input', async () => {
    const { run } = await startInTerminal();
    const [control, terminal] = [stage.nomad.control(), stage.nomad.terminal()];
    await terminal.say('stdout', control.stop());
    await control.say('stderr', control.stop());
    await control.say('stdout', `X ${control.token} 0\n`);
    await run.exit;
    await settle();
    expect([control.inputClosed, control.destroyed]).to.deep.equal([true, false]);
    expect(stage.executions.active).to.equal(1);
    await terminal.exit(137);
    await control.exit(0);
    expect([control.destroyed, terminal.destroyed]).to.deep.equal([true, true]);
    expect(stage.executions.active).to.equal(0);
    expect(stage.nomad.kills).to.deep.equal([]);
  });

  it('says why a runner without room refuses, although that came before the question [A2-58]', async () => {
    const { run } = begin(stage.executions, stage.runner, executionRequest('true'));
    const opening = stage.nomad.hold();
    opening.open();
    await settle();
    await stage.nomad.control().say('stdout', 'E - folder\n');
    await stage.nomad.control().exit(0);
    expect(await run.exit).to.deep.include({ kind: 'failed' });
    expect(JSON.stringify(await run.exit)).to.include('/tmp');
  });
});
