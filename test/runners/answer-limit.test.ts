import { expect } from 'chai';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import type { RunnersFixture } from '../support/runners.js';
import { nomadHidingJobs, startRunners } from '../support/runners.js';
import type { Gate } from '../support/waiting.js';
import { gate } from '../support/waiting.js';

const SEVEN = 7 as EnvironmentId;
const ANSWER_MS = 4_000;

describe('an answer while Nomad is silent', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  /** Nomad keeps what it is asked from now on to itself, until the gate opens. */
  function silence(...ops: string[]): Gate {
    const held = gate();
    fixture.nomad.before = ({ op }) => (ops.includes(op) ? held.promise : undefined);
    return held;
  }

  /** The code of a failure that comes within the limit. */
  async function answerOf(work: Promise<unknown>): Promise<string> {
    let code: string | undefined;
    void failureOf(work).then((error) => (code = error.code));
    await fixture.clock.advance(ANSWER_MS + 500);
    return code ?? 'no answer';
  }

  it('to a claim comes in time, and the runner stays idle where Nomad was only read', async () => {
    fixture = await startRunners({ nomad: nomadHidingJobs() });
    const { nomad } = fixture;
    const pool = nomad.runnerJobs(7);
    const held = silence('jobs.get');
    expect(await answerOf(fixture.claim())).to.equal('NOMAD_UNREACHABLE');
    held.open();
    await settle();
    expect(pool.map((id) => nomad.metaOf(id).used)).to.deep.equal(['false', 'false']);
    expect(fixture.statistics()).to.include({ usedRunners: 0 });
    expect((await fixture.claim()).id).to.equal(pool[0]);
  });

  it('to a claim comes in time, and what Nomad hands out after it is returned', async () => {
    fixture = await startRunners();
    const { nomad, claim, statistics } = fixture;
    const [first] = nomad.runnerJobs(7);
    const held = silence('register');
    expect(await answerOf(claim())).to.equal('NOMAD_UNREACHABLE');
    held.open();
    await fixture.clock.advance(1_000);
    expect(nomad.callsOf('purge')).to.deep.equal([first]);
    expect(statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('to a return comes in time; asked again it is done, then gone', async () => {
    fixture = await startRunners();
    const { manager, claim } = fixture;
    const runner = await claim();
    const held = silence('purge');
    expect(await answerOf(manager.return(runner.id))).to.equal('NOMAD_UNREACHABLE');
    held.open();
    await settle();
    await manager.return(runner.id);
    expect((await failureOf(manager.return(runner.id))).code).to.equal('RUNNER_GONE');
  });

  it('to a change comes in time: the one under way is carried out, and the one that waits is not', async () => {
    fixture = await startRunners();
    const { manager, nomad, clock } = fixture;
    const held = silence('register');
    const first = manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 3 }));
    const second = manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    const answers = await Promise.all([answerOf(first), answerOf(second)]);
    expect(answers).to.deep.equal(['NOMAD_UNREACHABLE', 'NOMAD_UNREACHABLE']);
    held.open();
    await clock.advance(1_000);
    expect(nomad.metaOf('template-7').prewarmingPoolSize).to.equal('3');
    expect(fixture.statistics()).to.include({ idleRunners: 3, prewarmingPoolSize: 3 });
  });

  it('to a reading of the templates comes in time', async () => {
    fixture = await startRunners();
    silence('jobs.list');
    expect(await answerOf(fixture.manager.refreshEnvironments())).to.equal('NOMAD_UNREACHABLE');
  });

  it('to a deletion comes when no runner goes any more, and while they do it takes its time', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 6 })] });
    const { manager, nomad, clock } = fixture;
    const waiting: Gate[] = [];
    nomad.before = async ({ op }) => {
      if (op !== 'purge') return;
      const held = gate();
      waiting.push(held);
      await held.promise;
    };
    let code: string | undefined;
    void failureOf(manager.deleteEnvironment(SEVEN)).then((error) => (code = error.code));
    for (let count = 0; count < 4; count += 1) {
      await clock.advance(3_000);
      waiting.shift()?.open();
    }
    await settle();
    expect([code, nomad.runnerJobs(7).length]).to.deep.equal([undefined, 2]);
    await clock.advance(ANSWER_MS + 500);
    expect(code).to.equal('NOMAD_UNREACHABLE');
    nomad.before = () => undefined;
    for (const held of waiting) held.open();
    await clock.advance(1_000);
    expect(nomad.jobDocuments.size).to.equal(0);
  });
});
