import { expect } from 'chai';
import type { Executions } from '../../lib/execution/executions.js';
import { TestRunner } from '../support/claimed-runner.js';
import { begin, executionRequest, startExecutions } from '../support/executions.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { PlayedExecs } from '../support/played-execs.js';

const PIPE = executionRequest('true', { interactive: false });

/** What a run that was cut leaves behind of others, as `Executions` treats it. */
describe('Processes that belong to nobody', () => {
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

  afterEach(async () => {
    const stopped = executions.stop();
    await clock.advance(5000);
    await stopped;
  });

  /** Plays a command that ends by itself. */
  async function exit(exec = nomad.pipe()): Promise<void> {
    await exec.say('stderr', exec.start() + exec.stop());
    await exec.say('stdout', `${exec.start()}${exec.stop()}0\n`);
  }

  const killed = (): boolean[] => nomad.kills.map(({ input }) => input.includes("serai_sweep='1'"));

  it('are ended with the only execution of a runner [A2-48]', async () => {
    const { run } = begin(executions, runner, PIPE);
    await settle();
    run.hangUp();
    await settle();
    expect(killed()).to.deep.equal([true]);
  });

  it('stay while another execution runs, and are ended when the last one lets go [A2-68]', async () => {
    const first = begin(executions, runner, PIPE);
    await settle();
    const second = begin(executions, runner, PIPE);
    await settle();
    const exec = nomad.pipe();
    nomad.killResult = 'K 0 2\n';
    first.run.hangUp();
    await clock.advance(1000);
    expect(killed()).to.deep.equal([false]);
    expect(nomad.kills[0]?.input).to.include(`serai_others='${second.id}'`);
    nomad.killResult = 'K 0 0\n';
    await exit(exec);
    expect(await second.run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
    await clock.advance(1000);
    expect(killed()).to.deep.equal([false, true]);
    expect(nomad.kills[1]?.input).to.include(`serai_id=''`).and.to.include(`serai_others='${second.id}'`);
  });

  it('hold the next execution back while they are ended, since it would look like one', async () => {
    nomad.killResult = undefined;
    const first = begin(executions, runner, PIPE);
    await settle();
    first.run.hangUp();
    await settle();
    const opened = nomad.execs.length;
    begin(executions, runner, PIPE);
    await settle();
    expect(nomad.execs).to.have.length(opened);
    await nomad.kills[0]?.say('stdout', 'K 0 0\n');
    await nomad.kills[0]?.exit(0);
    await settle();
    expect(nomad.execs).to.have.length(opened + 1);
  });

  it('are not those of a command that ended by itself', async () => {
    const first = begin(executions, runner, PIPE);
    await settle();
    await exit();
    await first.run.exit;
    await clock.advance(1000);
    expect(nomad.kills).to.deep.equal([]);
    const second = begin(executions, runner, PIPE);
    await settle();
    second.run.hangUp();
    await settle();
    expect(nomad.kills[0]?.input).to.include(`serai_others='${first.id}'`);
  });
});
