import { expect } from 'chai';
import { settle } from '../support/fake-clock.js';
import { startRunners } from '../support/runners.js';

describe('RunnerManager', () => {
  it('fills the pool, hands a runner out once Nomad has it, and refills', async () => {
    const { manager, nomad, claim, statistics } = await startRunners();
    expect(statistics()).to.deep.include({
      idleRunners: 2,
      usedRunners: 0,
      pendingRunners: 0,
      state: 'ready',
    });
    const runner = await claim(30);
    expect(nomad.metaOf(runner.id)).to.include({ used: 'true', timeout: '30' });
    expect(manager.get(runner.id)).to.equal(runner);
    await settle();
    expect(statistics()).to.deep.include({ idleRunners: 2, usedRunners: 1 });
    await manager.return(runner.id);
    expect(nomad.jobDocuments.has(runner.id)).to.equal(false);
    expect(runner.runnerSignal.aborted).to.equal(true);
    await manager.stop();
  });
});
