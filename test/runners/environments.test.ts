import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import type { RunnersFixture } from '../support/runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

const SEVEN = 7 as EnvironmentId;

describe('changing environments', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('is nothing when the body is the same: no write, every idle runner stays [A1-33]', async () => {
    fixture = await startRunners();
    const { nomad, manager } = fixture;
    const before = nomad.runnerJobs(7);
    const writes = nomad.callsOf('register').length;
    expect(await manager.putEnvironment(anEnvironment())).to.equal('unchanged');
    await settle();
    expect(nomad.callsOf('register')).to.have.length(writes);
    expect(nomad.runnerJobs(7)).to.deep.equal(before);
  });

  it('keeps every idle runner when only the size changes', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    const before = nomad.runnerJobs(7);
    expect(await manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 3 }))).to.equal('replaced');
    await settle();
    expect(nomad.runnerJobs(7)).to.include.members(before);
    expect(statistics()).to.include({ idleRunners: 3, prewarmingPoolSize: 3 });
    expect(nomad.metaOf('template-7').prewarmingPoolSize).to.equal('3');
  });

  it('fills the new pool first, then retires the old idle runners; used ones stay [A1-33]', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics, claim } = fixture;
    const used = await claim();
    await settle();
    const old = nomad.runnerJobs(7).filter((id) => id !== used.id);
    nomad.autoStart = false;
    await manager.putEnvironment(anEnvironment({ image: 'python:3.14' }));
    await settle();
    const fresh = nomad.runnerJobs(7).filter((id) => id !== used.id && !old.includes(id));
    expect(fresh).to.have.length(2);
    expect(statistics()).to.include({ idleRunners: 0, pendingRunners: 2 });
    expect((await failureOf(claim())).code).to.equal('NO_RUNNER_AVAILABLE'); // never an old one
    nomad.run(nomad.place(fresh[0]!).id);
    await settle();
    expect(nomad.runnerJobs(7)).to.include.members(old);
    nomad.run(nomad.place(fresh[1]!).id);
    await settle();
    expect(nomad.runnerJobs(7)).to.have.members([used.id, ...fresh]);
    expect(manager.get(used.id)).to.equal(used);
    expect(used.environment.image).to.equal('python:3.13-slim');
  });

  it('gives the room of the old idle runners up where there is none for the new', async () => {
    const nomad = new FakeNomad();
    nomad.capacity = 3;
    fixture = await startRunners({ nomad });
    const { manager, statistics, clock } = fixture;
    const old = nomad.runnerJobs(7);
    await manager.putEnvironment(anEnvironment({ image: 'python:3.14' }));
    await settle();
    expect(nomad.runnerJobs(7)).not.to.have.any.members(old);
    // Nomad places what it kept waiting.
    for (const id of nomad.runnerJobs(7)) nomad.run(nomad.place(id).id);
    await clock.advance(1_000);
    expect(statistics()).to.include({ idleRunners: 2, state: 'ready' });
  });

  it('ends with the last of several changes in a row, in order [A1-33]', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics, claim } = fixture;
    const images = ['a:1', 'b:1', 'c:1'];
    const changes = images.map((image) => manager.putEnvironment(anEnvironment({ image })));
    expect(await Promise.all(changes)).to.deep.equal(['replaced', 'replaced', 'replaced']);
    await settle();
    expect(manager.environment(SEVEN).image).to.equal('c:1');
    expect((await claim()).environment.image).to.equal('c:1');
    await settle();
    expect(statistics()).to.include({ idleRunners: 2, pendingRunners: 0 });
    const specs = nomad.runnerJobs(7).map((id) => nomad.jobDocuments.get(id)?.Meta?.serai_spec);
    expect(new Set(specs)).to.deep.equal(new Set([anEnvironment({ image: 'c:1' }).specHash]));
  });

  it('makes the idle runners of before good again when a change is taken back', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    const before = nomad.runnerJobs(7);
    nomad.autoStart = false;
    await manager.putEnvironment(anEnvironment({ image: 'bad:1' }));
    await settle();
    await manager.putEnvironment(anEnvironment());
    await settle();
    expect(nomad.runnerJobs(7)).to.deep.equal(before);
    expect(statistics()).to.include({ idleRunners: 2, state: 'ready' });
  });

  it('is not in force where Nomad did not take it', async () => {
    fixture = await startRunners();
    const { nomad, manager } = fixture;
    nomad.before = ({ op, id }) => {
      if (op === 'register' && id === 'template-7') throw new ServiceError('NOMAD_REJECTED', 'bad job');
    };
    const failure = await failureOf(manager.putEnvironment(anEnvironment({ image: 'x:1' })));
    expect(failure.code).to.equal('NOMAD_REJECTED');
    expect(manager.environment(SEVEN).image).to.equal('python:3.13-slim');
    nomad.before = () => undefined;
    expect(await manager.putEnvironment(anEnvironment({ image: 'x:1' }))).to.equal('replaced');
  });

  it('takes what another replica registered at once, and what another tool did when it is asked to read', async () => {
    fixture = await startRunners();
    const { nomad, manager } = fixture;
    const template = nomad.jobDocuments.get('template-7')!;
    const theirs = structuredClone({ ...template, ID: 'template-8' });
    nomad.putJob(theirs);
    const foreign = structuredClone({ ...template, ID: 'template-9', Meta: null });
    delete foreign.TaskGroups?.[1]?.Meta?.serai;
    nomad.putJob(foreign);
    await settle();
    expect(manager.environments().map(({ id }) => id)).to.deep.equal([7, 8]);
    await manager.refreshEnvironments();
    expect(manager.environments().map(({ id }) => id)).to.deep.equal([7, 8, 9]);
  });

  it('changes no pool by reading the templates again [A1-18]', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    const before = nomad.runnerJobs(7);
    await manager.refreshEnvironments();
    await settle();
    expect(nomad.runnerJobs(7)).to.deep.equal(before);
    expect(statistics()).to.include({ idleRunners: 2 });
  });

  it('registers a template again that was purged by somebody else, while it is wanted', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    nomad.purgeJob('template-7');
    await settle();
    expect(nomad.jobDocuments.has('template-7')).to.equal(true);
    expect(manager.environments()).to.deep.equal([anEnvironment()]);
    expect(statistics().idleRunners).to.equal(2);
  });

  it('tries on to register a template again until Nomad takes it', async () => {
    fixture = await startRunners();
    const { nomad, clock, warnings } = fixture;
    nomad.before = ({ op, id }) => {
      if (op === 'register' && id === 'template-7') throw new ServiceError('NOMAD_OVERLOADED', 'no leader');
    };
    nomad.purgeJob('template-7');
    await clock.advance(10_000);
    expect(nomad.jobDocuments.has('template-7')).to.equal(false);
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(nomad.jobDocuments.has('template-7')).to.equal(true);
    expect(warnings.filter((message) => message.includes('could not be registered again'))).to.have.length(1);
  });
});

describe('deleting an environment', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('removes its template and all its runners, used ones too, and waits for Nomad', async () => {
    fixture = await startRunners({ environments: [anEnvironment(), anEnvironment({ id: 8 })] });
    const { nomad, manager, claim, clock } = fixture;
    const runner = await claim();
    await settle();
    const held = gate();
    nomad.before = ({ op }) => (op === 'purge' ? held.promise : undefined);
    let isDone = false;
    const deletion = manager.deleteEnvironment(SEVEN).then(() => (isDone = true));
    await settle();
    expect(isDone).to.equal(false);
    expect(runner.runnerSignal.reason).to.have.nested.property('details.reason', 'environment-deleted');
    expect((await failureOf(claim())).code).to.equal('ENVIRONMENT_NOT_FOUND');
    expect(manager.environments().map(({ id }) => id)).to.deep.equal([8]);
    held.open();
    await deletion;
    expect([...nomad.jobDocuments.keys()].filter((id) => /^(7-|template-7)/.test(id))).to.deep.equal([]);
    expect(nomad.callsOf('purge').at(-1)).to.equal('template-7');
    await clock.advance(600_000);
    expect(manager.environments().map(({ id }) => id)).to.deep.equal([8]);
    expect(nomad.runnerJobs(8)).to.have.length(2);
    expect((await failureOf(manager.deleteEnvironment(SEVEN))).code).to.equal('ENVIRONMENT_NOT_FOUND');
  });

  it('does not take an environment 1 for the owner of runners of 10', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ id: 1 }), anEnvironment({ id: 10 })] });
    const { nomad, manager } = fixture;
    await manager.deleteEnvironment(1 as EnvironmentId);
    await settle();
    expect(nomad.runnerJobs(10)).to.have.length(2);
    expect(nomad.jobDocuments.has('template-10')).to.equal(true);
  });

  it('goes on in the background after a failure, which the caller is told', async () => {
    fixture = await startRunners();
    const { nomad, manager, clock } = fixture;
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    expect((await failureOf(manager.deleteEnvironment(SEVEN))).code).to.equal('NOMAD_UNREACHABLE');
    expect(manager.environments()).to.deep.equal([]);
    nomad.before = () => undefined;
    await clock.advance(30_000);
    expect(nomad.jobDocuments.size).to.equal(0);
    expect((await failureOf(manager.deleteEnvironment(SEVEN))).code).to.equal('ENVIRONMENT_NOT_FOUND');
  });

  it('is finished before the environment is made anew', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    await failureOf(manager.deleteEnvironment(SEVEN));
    expect((await failureOf(manager.putEnvironment(anEnvironment()))).code).to.equal('NOMAD_UNREACHABLE');
    nomad.before = () => undefined;
    expect(await manager.putEnvironment(anEnvironment())).to.equal('created');
    await settle();
    expect(statistics()).to.include({ idleRunners: 2, state: 'ready' });
  });

  it('waits for a claim that is on its way, and gives nobody that runner', async () => {
    fixture = await startRunners();
    const { nomad, manager, claim } = fixture;
    const held = gate();
    nomad.before = ({ op, id }) => (op === 'register' && id.startsWith('7-') ? held.promise : undefined);
    const claiming = failureOf(claim());
    await settle();
    const deletion = manager.deleteEnvironment(SEVEN);
    await settle();
    held.open();
    await deletion;
    expect((await claiming).code).to.equal('ENVIRONMENT_NOT_FOUND');
    expect(nomad.jobDocuments.size).to.equal(0);
  });

  it('and putting it again at once makes a new one, whatever late events say [A1-28]', async () => {
    fixture = await startRunners();
    const { nomad, manager, statistics } = fixture;
    const old = nomad.jobDocuments.get('template-7')!;
    const deletion = manager.deleteEnvironment(SEVEN);
    const put = manager.putEnvironment(anEnvironment({ image: 'new:1' }));
    await deletion;
    expect(await put).to.equal('created');
    nomad.tell({ topic: 'job', index: nomad.index, job: old });
    await settle();
    expect(manager.environment(SEVEN).image).to.equal('new:1');
    expect(statistics()).to.include({ idleRunners: 2, state: 'ready' });
    expect(nomad.jobDocuments.get('template-7')?.Version).to.equal(0);
  });

  it('does not come back by the replay of old events', async () => {
    fixture = await startRunners();
    const { nomad, manager, clock } = fixture;
    const old = nomad.jobDocuments.get('template-7')!;
    await manager.deleteEnvironment(SEVEN);
    nomad.cut();
    await clock.advance(1_000);
    nomad.tell({ topic: 'job', index: nomad.index, job: old });
    await settle();
    expect(manager.environments()).to.deep.equal([]);
    expect(nomad.jobDocuments.size).to.equal(0);
  });
});
