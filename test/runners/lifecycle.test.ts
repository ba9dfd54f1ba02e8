import { expect } from 'chai';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import { nomadHidingJobs, startRunners } from '../support/runners.js';

describe('stopping the runners', () => {
  it('leaves nothing behind but the runners in Nomad, and tells who has one', async () => {
    const { manager, nomad, clock, claim } = await startRunners();
    const runner = await claim(60);
    await settle();
    const jobs = [...nomad.jobDocuments.keys()];
    const stopping = manager.stop();
    expect(manager.stop()).to.equal(stopping);
    await stopping;
    expect(runner.runnerSignal.reason).to.have.property('code', 'STOPPED');
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'service-stopping');
    expect(clock.armed).to.equal(0);
    expect(nomad.openStreams).to.equal(0);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal(jobs);
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    const calls = nomad.calls.length;
    nomad.restart(runner.id);
    await clock.advance(3_600_000);
    expect(nomad.calls).to.have.length(calls);
    expect(manager.state).to.equal('stopped');
  });

  it('ends in the middle of everything: listing, outage, refill, removal, deletion', async () => {
    const never = (): Promise<void> => new Promise(() => undefined);
    const stages: [string, (nomad: FakeNomad) => void][] = [
      ['listing', (nomad) => (nomad.before = ({ op }) => (op === 'nodes.list' ? never() : undefined))],
      ['subscribing', (nomad) => (nomad.before = ({ op }) => (op === 'subscribe' ? never() : undefined))],
      ['silence', (nomad) => (nomad.before = ({ op }) => (op === 'leader' ? never() : undefined))],
      ['outage', (nomad) => (nomad.before = () => Promise.reject(new Error('down')))],
    ];
    for (const [stage, set] of stages) {
      const nomad = new FakeNomad();
      set(nomad);
      const { manager, clock } = await startRunners({ nomad });
      await clock.advance(6_000);
      await manager.stop();
      expect(clock.armed, stage).to.equal(0);
      expect(nomad.openStreams, stage).to.equal(0);
    }
  });

  it('rejects what comes later, and whoever waits', async () => {
    const { manager, nomad, claim } = await startRunners({ nomad: nomadHidingJobs() });
    nomad.before = ({ op }) => (op === 'jobs.get' ? new Promise<void>(() => undefined) : undefined);
    const claiming = failureOf(claim());
    await settle();
    await manager.stop();
    expect((await claiming).code).to.equal('STOPPED');
    expect((await failureOf(claim())).code).to.equal('STOPPED');
    expect((await failureOf(() => manager.statistics())).code).to.equal('STOPPED');
    expect((await failureOf(() => manager.start())).code).to.equal('ILLEGAL_STATE');
  });

  it('before starting is allowed, and starting twice is not', async () => {
    const { manager } = await startRunners({ start: false });
    await manager.stop();
    expect(manager.state).to.equal('stopped');
    const running = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    expect((await failureOf(() => running.manager.start())).code).to.equal('ILLEGAL_STATE');
    await running.manager.stop();
  });
});
