import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import type { ProgramSignal } from '../../lib/base/program-signals.js';
import type { Executions } from '../../lib/execution/executions.js';
import { SignalQueue } from '../../lib/execution/signals.js';
import { TestRunner } from '../support/claimed-runner.js';
import type { Begun } from '../support/executions.js';
import { begin, executionRequest, startExecutions } from '../support/executions.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { PlayedExecs } from '../support/played-execs.js';
import type { Gate } from '../support/waiting.js';
import { gate } from '../support/waiting.js';

describe('SignalQueue', () => {
  let sent: ProgramSignal[];
  let sending: Gate<boolean>[];
  let queue: SignalQueue;

  beforeEach(() => {
    sent = [];
    sending = [];
    queue = new SignalQueue(async (name) => {
      sent.push(name);
      const held = gate<boolean>();
      sending.push(held);
      if (!(await held.promise)) throw new Error('not sent');
    });
  });

  it('sends one after the other, in their order', async () => {
    const done: string[] = [];
    void queue.add('SIGINT').then(() => done.push('INT'));
    void queue.add('SIGTERM').then(() => done.push('TERM'));
    await settle();
    expect(sent).to.deep.equal(['SIGINT']);
    sending[0]?.open(true);
    await settle();
    expect([sent, done]).to.deep.equal([['SIGINT', 'SIGTERM'], ['INT']]);
    sending[1]?.open(true);
    await queue.idle();
    expect(done).to.deep.equal(['INT', 'TERM']);
  });

  it('sends once what waits several times, and again what is under way', async () => {
    const all = [queue.add('SIGINT')];
    await settle();
    for (let i = 0; i < 100; i += 1) all.push(queue.add('SIGINT'), queue.add('SIGTERM'));
    for (let i = 0; i < 3; i += 1) {
      sending[i]?.open(true);
      await settle();
    }
    await Promise.all(all);
    expect(sent).to.deep.equal(['SIGINT', 'SIGINT', 'SIGTERM']);
  });

  it('goes on after one that failed, and tells of the failure to who asked', async () => {
    const first = queue.add('SIGINT').then(
      () => 'sent',
      () => 'failed',
    );
    const second = queue.add('SIGTERM');
    await settle();
    sending[0]?.open(false);
    await settle();
    sending[1]?.open(true);
    await second;
    expect(await first).to.equal('failed');
    await queue.idle();
  });
});

describe('signals of a run', () => {
  let clock: FakeClock;
  let nomad: PlayedExecs;
  let runner: TestRunner;
  let executions: Executions;
  let begun: Begun;

  beforeEach(async () => {
    clock = new FakeClock();
    nomad = new PlayedExecs();
    runner = new TestRunner();
    executions = await startExecutions({ nomad, clock });
    begun = begin(executions, runner, executionRequest('true', { interactive: false }));
    await settle();
  });

  afterEach(async () => {
    nomad.killResult = 'K 0 0\n';
    begun.run.hangUp();
    await answered();
    const stopped = executions.stop();
    await clock.advance(5000);
    await stopped;
    expect([executions.active, clock.armed, runner.activities]).to.deep.equal([0, 0, 0]);
    expect(runner.abandoned).to.deep.equal([]);
  });

  async function startCommand(): Promise<void> {
    await nomad.pipe().say('stdout', `R 10 10 0\n${nomad.pipe().start()}`);
    await nomad.pipe().say('stderr', nomad.pipe().start());
  }

  /** Lets the exec of a script answer, before any time limit. */
  async function answered(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await settle();
  }

  async function outcome(name: ProgramSignal): Promise<string> {
    const sent = begun.run.signal(name).then(
      () => 'sent',
      (error: unknown) => (error instanceof ServiceError ? error.code : 'a bug'),
    );
    await answered();
    await clock.advance(5000);
    return sent;
  }

  it('wait for the start of the command, then go out by an exec of their own', async () => {
    nomad.killResult = 'S 2 0\n';
    const sent = begun.run.signal('SIGTERM');
    await settle();
    expect(nomad.kills).to.deep.equal([]);
    await startCommand();
    await sent;
    expect(nomad.kills).to.have.length(1);
    expect(nomad.kills[0]?.input).to.include("serai_signal='TERM'").and.to.include(`serai_id='${begun.id}'`);
    expect(nomad.kills[0]?.destroyed).to.equal(true);
  });

  it('fail where they may not have reached every process, and end nothing', async () => {
    await startCommand();
    for (const [result, expected] of [
      ['S 3 0\n', 'sent'],
      ['S 0 0\n', 'EXECUTION_FAILED'],
      ['S 3 1\n', 'EXECUTION_FAILED'],
      ['nonsense', 'EXECUTION_FAILED'],
      [undefined, 'EXECUTION_FAILED'],
    ] as const) {
      nomad.killResult = result;
      expect(await outcome('SIGINT'), result).to.equal(expected);
    }
    expect(nomad.kills).to.have.length(5);
    nomad.failure = new ServiceError('NOMAD_OVERLOADED', 'too many connections');
    expect(await outcome('SIGINT')).to.equal('NOMAD_OVERLOADED');
    nomad.failure = undefined;
  });

  it('end everything by SIGKILL as a time limit does, and try that again', async () => {
    await startCommand();
    nomad.failure = new ServiceError('NOMAD_OVERLOADED', 'too many connections');
    const sent = begun.run.signal('SIGKILL');
    await clock.advance(100);
    nomad.failure = undefined;
    await clock.advance(100);
    await sent;
    expect(nomad.kills[0]?.input).to.include('kill -KILL').and.to.include("serai_sweep=''");
    nomad.killResult = 'K 1 0\n';
    expect(await outcome('SIGKILL')).to.equal('EXECUTION_FAILED');
  });

  it('are nothing after the end, and hold the runner until the last one is over', async () => {
    await startCommand();
    nomad.killResult = undefined;
    const sent = begun.run.signal('SIGTERM').catch(() => 'failed');
    await settle();
    const pipe = nomad.pipe();
    await pipe.say('stderr', pipe.stop());
    await pipe.say('stdout', `${pipe.stop()}0\n`);
    await begun.run.exit;
    await begun.run.signal('SIGTERM');
    await pipe.exit(0);
    expect(executions.active).to.equal(1);
    await clock.advance(5000);
    expect(await sent).to.equal('failed');
    expect(nomad.kills).to.have.length(1);
    expect(executions.active).to.equal(0);
  });
});
