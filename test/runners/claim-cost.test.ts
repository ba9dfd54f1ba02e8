import { expect } from 'chai';
import { anEnvironment } from '../support/environments.js';
import { settle } from '../support/fake-clock.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('what a claim costs', () => {
  let fixture: RunnersFixture;

  afterEach(() => fixture.manager.stop());

  it('writes to the job as an event showed it, without reading it first', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    await claim();
    expect(nomad.callsOf('jobs.get').filter((id) => id.startsWith('7-'))).to.deep.equal([]);
  });

  it('reads the job after all where it is not what the event showed any more', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    const [first = ''] = nomad.runnerJobs(7);
    const job = nomad.jobDocuments.get(first);
    nomad.muted = true;
    if (job) nomad.putJob({ ...job, Priority: 70 });
    nomad.muted = false;
    expect((await claim()).id).to.equal(first);
    expect(nomad.jobDocuments.get(first)?.Priority, 'what the other one wrote').to.equal(70);
  });

  it('reads jobs first while a write of another claim is late, so that a frozen Nomad costs one runner and not all', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 5 })] });
    const { nomad, claim, clock } = fixture;
    const frozen = gate();
    nomad.before = () => frozen.promise;
    const first = claim();
    await settle();
    await clock.advance(300);
    const others = [claim(), claim(), claim()];
    await settle();
    expect(
      nomad.callsOf('register').filter((id) => nomad.runnerJobs(7).slice(1).includes(id)),
    ).to.have.length(4);
    expect(nomad.callsOf('jobs.get').filter((id) => id.startsWith('7-'))).to.have.length(3);
    frozen.open();
    await Promise.all([first, ...others]);
  });

  it('talks to Nomad before the refill of the pool does', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    const asked: string[] = [];
    const old = new Set(nomad.runnerJobs(7));
    nomad.before = ({ op, id }) => {
      if (op === 'register') asked.push(old.has(id) ? 'claim' : 'refill');
      return undefined;
    };
    await Promise.all([claim(), claim()]);
    await settle();
    expect(asked).to.deep.equal(['claim', 'claim', 'refill', 'refill']);
  });

  it('lets its client run a first command before the pool is refilled', async () => {
    fixture = await startRunners({ refillDelayMs: 25 });
    const { nomad, claim, clock } = fixture;
    const filled = nomad.callsOf('register').length;
    await claim();
    await clock.advance(20);
    await claim();
    await clock.advance(24);
    expect(nomad.callsOf('register')).to.have.length(filled + 2);
    await clock.advance(1);
    expect(nomad.callsOf('register')).to.have.length(filled + 4);
  });

  it('is not waited for by the refill for long, however many come', async () => {
    fixture = await startRunners({
      refillDelayMs: 25,
      environments: [anEnvironment({ prewarmingPoolSize: 10 })],
    });
    const { nomad, claim, clock } = fixture;
    const filled = nomad.callsOf('register').length;
    for (let claims = 1; claims <= 4; claims += 1) {
      await claim();
      await clock.advance(20);
    }
    expect(nomad.callsOf('register')).to.have.length(filled + 4 + 1);
  });
});
