import { expect } from 'chai';
import { anEnvironment } from '../support/environments.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import { task } from '../support/fake-server.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const RUNNERS = 300;
const ENVIRONMENT = anEnvironment({ prewarmingPoolSize: RUNNERS });

describe('a flood of events', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  /** Each runner is told of anew several times, some restart, and some are purged. */
  function flood(nomad: FakeNomad): { purged: string[]; events: number } {
    const before = nomad.said.length;
    const ids = nomad.runnerJobs(7);
    const purged = ids.filter((_, n) => n % 10 === 0);
    ids.forEach((id, n) => {
      const { id: allocation } = nomad.allocationOf(id);
      for (let restarts = 1; restarts <= 3; restarts += 1) {
        const tasks = { 'default-task': task('running', { restarts: n % 2 === 0 ? restarts : 0 }) };
        nomad.update(allocation, { tasks });
      }
    });
    for (const id of purged) nomad.purgeJob(id);
    return { purged, events: nomad.said.length - before };
  }

  it('is merged while it lasts: no stream is opened anew, nothing is listed, and all of it counts', async () => {
    fixture = await startRunners({ environments: [ENVIRONMENT] });
    const { nomad, statistics } = fixture;
    const [subscribed, listed] = [nomad.callsOf('subscribe').length, nomad.callsOf('nodes.list').length];
    const { purged, events } = flood(nomad);
    expect(events).to.be.greaterThan(900);
    await settle();
    expect(statistics()).to.include({ idleRunners: RUNNERS, pendingRunners: 0, state: 'ready' });
    expect(nomad.runnerJobs(7)).to.have.length(RUNNERS).and.not.include(purged[0]);
    expect(nomad.callsOf('subscribe')).to.have.length(subscribed);
    expect(nomad.callsOf('nodes.list')).to.have.length(listed);
  });

  it('waits for a listing that is on its way, and is applied behind it', async () => {
    const nomad = new FakeNomad();
    await (await startRunners({ nomad, environments: [ENVIRONMENT] })).manager.stop();
    const taken = gate();
    let isHeld = true;
    nomad.after = ({ op }) => (op === 'nodes.list' && isHeld ? taken.promise : undefined);
    fixture = await startRunners({ nomad, environments: [] });
    const { purged } = flood(nomad);
    await settle();
    expect(fixture.manager.ready).to.equal(false);
    isHeld = false;
    taken.open();
    await settle();
    expect(fixture.statistics()).to.include({ idleRunners: RUNNERS, pendingRunners: 0 });
    // Those that were purged are replaced, since they are known to be gone.
    expect(nomad.runnerJobs(7)).to.have.length(RUNNERS).and.not.include(purged[0]);
    expect(nomad.callsOf('subscribe')).to.have.length(2); // one for each service
  });
});
