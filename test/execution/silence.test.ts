import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { NomadPulse } from '../../lib/execution/pulse.js';
import { SilenceWatch } from '../../lib/execution/silence.js';
import { FakeClock, settle } from '../support/fake-clock.js';
import { gate } from '../support/waiting.js';
import type { Stage } from './support/stage.js';
import { isSettled, openStage } from './support/stage.js';

const SILENT = { answers: () => Promise.resolve(false) };

describe('NomadPulse', () => {
  const pulseOf = (leader: () => Promise<string>, clock = new FakeClock()) =>
    new NomadPulse({ nomad: { leader }, clock });

  it('is there where Nomad answers, be it with an error, and not where it refuses or is late', async () => {
    const failing = (code: 'NOMAD_OVERLOADED' | 'NOMAD_UNREACHABLE') =>
      pulseOf(() => Promise.reject(new ServiceError(code, 'x'))).answers();
    expect(await pulseOf(() => Promise.resolve('a:4647')).answers()).to.equal(true);
    expect(await failing('NOMAD_OVERLOADED')).to.equal(true);
    expect(await failing('NOMAD_UNREACHABLE')).to.equal(false);
    const clock = new FakeClock();
    const late = pulseOf(() => new Promise(() => undefined), clock).answers();
    await clock.advance(2_000);
    expect(await late).to.equal(false);
    expect(clock.armed).to.equal(0);
  });

  it('asks once, however many want to know', async () => {
    let questions = 0;
    const held = gate<string>();
    const pulse = pulseOf(() => {
      questions += 1;
      return held.promise;
    });
    const both = Promise.all([pulse.answers(), pulse.answers()]);
    held.open('a:4647');
    expect(await both).to.deep.equal([true, true]);
    expect(questions).to.equal(1);
    await pulse.answers();
    expect(questions).to.equal(2);
  });
});

describe('SilenceWatch', () => {
  it('calls back after two seconds in which nothing was heard, and not while something is', async () => {
    const clock = new FakeClock();
    let calls = 0;
    const watch = new SilenceWatch({ clock, pulse: SILENT, onSilent: () => (calls += 1) });
    await clock.advance(1_500);
    watch.heard();
    await clock.advance(1_999);
    expect(calls).to.equal(0);
    await clock.advance(1);
    expect([calls, clock.armed]).to.deep.equal([1, 0]);
  });

  it('waits on while Nomad answers, and is still once stopped, also while it asks', async () => {
    const clock = new FakeClock();
    const held = gate<boolean>();
    let calls = 0;
    let questions = 0;
    const pulse = {
      answers: () => {
        questions += 1;
        return questions < 3 ? Promise.resolve(true) : held.promise;
      },
    };
    const watch = new SilenceWatch({ clock, pulse, onSilent: () => (calls += 1) });
    await clock.advance(6_000);
    expect(questions).to.equal(3);
    watch.stop();
    held.open(false);
    await settle();
    expect([calls, clock.armed]).to.deep.equal([0, 0]);
  });
});

describe('an execution while Nomad is silent', () => {
  let stage: Stage;

  beforeEach(async () => {
    stage = await openStage();
  });

  afterEach(() => stage.close());

  /** A command with a time limit of 90 s that runs. */
  async function started() {
    const { run } = await stage.start({ interactive: false, timeLimitSeconds: 90 });
    const pipe = stage.nomad.pipe();
    await pipe.say('stdout', `R 10 10 0\n${pipe.start()}`);
    await pipe.say('stderr', pipe.start());
    return { run, pipe };
  }

  it('is told within seconds that it cannot be started', async () => {
    stage.pulse.answers = SILENT.answers;
    const held = stage.nomad.hold();
    const { run } = await stage.start();
    await stage.clock.advance(2_000);
    expect(await run.exit).to.deep.equal({ kind: 'failed', message: 'Nomad cannot be reached' });
    held.open();
  });

  it('goes on once it has started', async () => {
    const { run, pipe } = await started();
    stage.pulse.answers = SILENT.answers;
    await stage.clock.advance(60_000);
    expect(await isSettled(run.exit)).to.equal(false);
    await pipe.say('stderr', pipe.stop());
    await pipe.say('stdout', `${pipe.stop()}0\n`);
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
  });

  it('keeps its runner: what cannot be ended now is ended once Nomad answers', async () => {
    const { run } = await started();
    stage.pulse.answers = SILENT.answers;
    stage.nomad.failure = new ServiceError('NOMAD_UNREACHABLE', 'silence');
    await stage.clock.advance(120_000);
    expect(await run.exit).to.deep.equal({ kind: 'time-limit' });
    expect(await isSettled(run.cleared)).to.equal(false);
    expect([stage.nomad.kills.length, stage.runner.abandoned]).to.deep.equal([0, []]);
    stage.nomad.failure = undefined;
    stage.pulse.answers = () => Promise.resolve(true);
    await stage.clock.advance(600);
    await stage.clock.advance(2_400);
    expect(stage.nomad.kills).to.have.length(1);
    expect(stage.runner.abandoned).to.deep.equal([]);
    expect(await isSettled(run.cleared)).to.equal(true);
  });

  it('gives its runner up where Nomad answers and nobody can look all the same', async () => {
    const { run } = await started();
    stage.nomad.failure = new ServiceError('NOMAD_UNREACHABLE', 'silence');
    await stage.clock.advance(94_000);
    await run.exit;
    expect(stage.runner.abandoned).to.deep.equal(['not-killable']);
  });
});
