import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { FakeNomad } from '../support/fake-nomad.js';
import type { RunnersFixture } from '../support/runners.js';
import { nomadHidingJobs, startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('claiming a runner', () => {
  let fixture: RunnersFixture;
  afterEach(() => fixture.manager.stop());

  it('marks the job as Nomad has it, under its index, and changes nothing else', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    const before = new Map(nomad.jobDocuments);
    const runner = await claim(30);
    const job = nomad.jobDocuments.get(runner.id);
    const was = before.get(runner.id);
    expect(nomad.metaOf(runner.id)).to.include({ used: 'true', timeout: '30', prewarmingPoolSize: '2' });
    expect(job?.Meta).to.deep.equal(was?.Meta);
    expect(job?.TaskGroups?.[0]).to.deep.equal(was?.TaskGroups?.[0]);
    expect(job?.Version).to.equal(1);
    expect(runner.task).to.equal('default-task');
    expect(runner.allocationId).to.equal(nomad.allocationOf(runner.id).id);
    expect(runner.environment.name).to.equal('Python');
  });

  it('answers only once Nomad has it', async () => {
    fixture = await startRunners();
    const { nomad, claim, manager } = fixture;
    const written = gate();
    nomad.before = ({ op }) => (op === 'register' ? written.promise : undefined);
    let answered: string | undefined;
    const claiming = claim().then((runner) => (answered = runner.id));
    await settle();
    expect(answered).to.equal(undefined);
    expect(() => manager.get(nomad.runnerJobs(7)[0] ?? '')).to.throw('not in use');
    written.open();
    await claiming;
    expect(answered).to.equal(nomad.runnerJobs(7)[0]);
  });

  it('hands the oldest idle runner out first', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 3 })] });
    const oldest = fixture.nomad.runnerJobs(7);
    const claimed = [await fixture.claim(), await fixture.claim(), await fixture.claim()];
    expect(claimed.map(({ id }) => id)).to.deep.equal(oldest.slice(0, 3));
  });

  it('hands a runner to one of many simultaneous claims', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 5 })] });
    const { claim } = fixture;
    const claims = await Promise.allSettled(Array.from({ length: 20 }, () => claim()));
    const ids = claims.flatMap((result) => (result.status === 'fulfilled' ? result.value.id : []));
    expect(ids).to.have.length(5);
    expect(new Set(ids).size).to.equal(5);
    for (const result of claims) {
      if (result.status === 'rejected') expect(result.reason).to.have.property('code', 'NO_RUNNER_AVAILABLE');
    }
  });

  it('tells an unknown environment from an empty pool, and when to come again', async () => {
    fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 0 })] });
    const unknown = await failureOf(fixture.claim(0, 8));
    expect(unknown.code).to.equal('ENVIRONMENT_NOT_FOUND');
    const empty = await failureOf(fixture.claim());
    expect(empty.code).to.equal('NO_RUNNER_AVAILABLE');
    expect(empty.retryAfterSeconds).to.equal(1);
  });

  it('passes the ports of the allocation on', async () => {
    const environment = anEnvironment({ networkAccess: true, exposedPorts: [80, 443] });
    fixture = await startRunners({ environments: [environment] });
    const { mappedPorts } = await fixture.claim();
    expect(mappedPorts.map(({ exposedPort, hostPort }) => [exposedPort, hostPort])).to.deep.equal([
      [80, 20_000],
      [443, 20_001],
    ]);
  });

  describe('when Nomad does not take the write', () => {
    it('goes on with the next runner where another replica was first', async () => {
      fixture = await startRunners();
      const { nomad, claim, statistics } = fixture;
      const [first, second] = nomad.runnerJobs(7);
      nomad.before = ({ op, id }) => {
        if (op !== 'register' || id !== first) return;
        nomad.before = () => undefined;
        const job = structuredClone(nomad.jobDocuments.get(id)!);
        Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { used: 'true', timeout: '9' });
        nomad.putJob(job);
      };
      expect((await claim()).id).to.equal(second);
      await settle();
      expect(nomad.jobDocuments.has(first!)).to.equal(true); // it is the other one's
      expect(statistics().usedRunners).to.equal(2);
    });

    it('destroys the runner, tries the next, and never hands the first out [A1-34]', async () => {
      fixture = await startRunners();
      const { nomad, claim, statistics } = fixture;
      const [first, second] = nomad.runnerJobs(7);
      nomad.before = ({ op, id }) => {
        if (op === 'register' && id === first) throw new ServiceError('NOMAD_REJECTED', 'no');
      };
      const runner = await claim();
      expect(runner.id).to.equal(second);
      await settle();
      expect(nomad.callsOf('purge')).to.deep.equal([first]);
      expect(statistics()).to.include({ idleRunners: 2, usedRunners: 1 });
    });

    it('destroys a runner whose write may have got through [A1-34]', async () => {
      fixture = await startRunners();
      const { nomad, claim } = fixture;
      const [first] = nomad.runnerJobs(7);
      nomad.after = ({ op, id }) => {
        if (op === 'register' && id === first) throw new ServiceError('NOMAD_PROTOCOL', 'half an answer');
      };
      expect((await claim()).id).not.to.equal(first);
      await settle();
      expect(nomad.jobDocuments.has(first!)).to.equal(false);
    });

    it('does not empty the pool: it stops after three, or after one where Nomad is down', async () => {
      fixture = await startRunners({ environments: [anEnvironment({ prewarmingPoolSize: 6 })] });
      const { nomad, claim } = fixture;
      const pool = new Set(nomad.runnerJobs(7));
      let code: 'NOMAD_REJECTED' | 'NOMAD_UNREACHABLE' = 'NOMAD_REJECTED';
      nomad.before = ({ op, id }) => {
        if (op === 'register' && pool.has(id)) throw new ServiceError(code, 'no');
      };
      expect((await failureOf(claim())).code).to.equal('NOMAD_REJECTED');
      await settle();
      expect(nomad.callsOf('purge')).to.have.length(3);
      code = 'NOMAD_UNREACHABLE';
      expect((await failureOf(claim())).code).to.equal('NOMAD_UNREACHABLE');
      await settle();
      expect(nomad.callsOf('purge')).to.have.length(4);
    });

    it('costs no runner where Nomad could not even be read', async () => {
      fixture = await startRunners({ nomad: nomadHidingJobs() });
      const { nomad, claim, statistics } = fixture;
      const pool = nomad.runnerJobs(7);
      nomad.before = ({ op }) => {
        if (op === 'jobs.get') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
      };
      expect((await failureOf(claim())).code).to.equal('NOMAD_UNREACHABLE');
      nomad.before = () => undefined;
      await settle();
      expect(statistics().idleRunners).to.equal(2);
      expect(nomad.runnerJobs(7)).to.deep.equal(pool);
      expect((await claim()).id).to.equal(pool[0]);
    });
  });

  it('never returns a runner whose job was purged behind its back [A1-36]', async () => {
    fixture = await startRunners();
    const { nomad, claim, statistics } = fixture;
    const [first, second] = nomad.runnerJobs(7);
    nomad.muted = true;
    nomad.purgeJob(first!);
    nomad.muted = false;
    expect((await claim()).id).to.equal(second);
    await settle();
    expect(statistics().idleRunners).to.equal(2);
  });

  it('fails over where the allocation does not run any more when the write returns', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    const [first, second] = nomad.runnerJobs(7);
    nomad.after = async ({ op, id }) => {
      if (op !== 'register' || id !== first) return;
      nomad.update(nomad.allocationOf(id).id, { clientStatus: 'failed' });
      await settle(); // the event is heard before the answer
    };
    expect((await claim()).id).to.equal(second);
    await settle();
    expect(nomad.jobDocuments.has(first!)).to.equal(false);
  });

  it('asks for the allocation itself while no events arrive', async () => {
    fixture = await startRunners();
    const { nomad, claim } = fixture;
    const [first, second] = nomad.runnerJobs(7);
    nomad.before = ({ op }) => {
      if (op === 'subscribe') throw new ServiceError('NOMAD_UNREACHABLE', 'no stream');
    };
    nomad.cut();
    await settle();
    nomad.update(nomad.allocationOf(first!).id, { clientStatus: 'lost' });
    expect((await claim()).id).to.equal(second);
  });

  it('never hands out an old specification, also where it changes while the claim is written [A1-33]', async () => {
    fixture = await startRunners();
    const { nomad, claim, manager } = fixture;
    const old = new Set(nomad.runnerJobs(7));
    const written = gate();
    nomad.before = ({ op, id }) => (op === 'register' && old.has(id) ? written.promise : undefined);
    const claiming = claim();
    await settle();
    await manager.putEnvironment(anEnvironment({ image: 'python:3.14' }));
    // New runners make way for the claim, and not for long.
    await fixture.clock.advance(75);
    written.open();
    const runner = await claiming;
    expect(old.has(runner.id)).to.equal(false);
    expect(runner.environment.image).to.equal('python:3.14');
    await settle();
    for (const id of old) expect(nomad.jobDocuments.has(id)).to.equal(false);
  });

  it('gives the runner back where the client left meanwhile', async () => {
    fixture = await startRunners();
    const { nomad, manager } = fixture;
    const written = gate();
    nomad.before = ({ op }) => (op === 'register' ? written.promise : undefined);
    const request = new AbortController();
    const claiming = failureOf(
      manager.claim({
        environmentId: 7 as EnvironmentId,
        inactivityTimeoutSeconds: 0,
        requestSignal: request.signal,
      }),
    );
    await settle();
    request.abort(new ServiceError('STOPPED', 'the client left'));
    written.open();
    expect((await claiming).message).to.equal('the client left');
    await settle();
    expect(nomad.callsOf('purge')).to.have.length(1);
    expect(fixture.statistics()).to.include({ idleRunners: 2, usedRunners: 0 });
  });

  it('is refused, with a hint when to come again, until Nomad was read for the first time [A1-15]', async () => {
    const nomad = new FakeNomad();
    const listed = gate();
    nomad.before = ({ op }) => (op === 'nodes.list' ? listed.promise : undefined);
    fixture = await startRunners({ nomad });
    const { manager } = fixture;
    expect(manager.ready).to.equal(false);
    for (const work of [
      () => fixture.claim(),
      () => manager.return('x'),
      () => manager.putEnvironment(anEnvironment()),
      () => manager.environments(),
      () => manager.get('x'),
    ]) {
      const failure = await failureOf(work);
      expect(failure.code).to.equal('NOT_READY');
      expect(failure.retryAfterSeconds).to.be.greaterThan(0);
    }
    listed.open();
    await settle();
    expect(manager.ready).to.equal(true);
    expect((await failureOf(fixture.claim())).code).to.equal('ENVIRONMENT_NOT_FOUND');
  });
});
