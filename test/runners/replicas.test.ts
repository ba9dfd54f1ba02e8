import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { anEnvironment } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { settle } from '../support/fake-clock.js';
import { addressOf, Replicas } from '../support/shared-runners.js';
import { whyGone } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('a runner among several replicas', () => {
  let replicas: Replicas;
  beforeEach(async () => {
    replicas = await Replicas.start();
  });
  afterEach(() => replicas[Symbol.asyncDispose]());

  it('belongs to the one that claimed it, and is told of as such by the other', async () => {
    const { a, b, nomad } = replicas;
    const runner = await a.claim(30);
    await settle();
    expect(nomad.metaOf(runner.id)).to.include({ used: 'true', timeout: '30', owner: 'a' });
    expect([a.manager.owns(runner.id), b.manager.owns(runner.id)]).to.deep.equal([true, false]);
    expect(await b.locate(runner.id)).to.deep.equal({
      kind: 'elsewhere',
      owner: { id: 'a', address: addressOf('a') },
    });
    expect((await failureOf(() => b.manager.get(runner.id))).code).to.equal('RUNNER_GONE');
    expect([a.statistics(), b.statistics()].map(({ usedRunners }) => usedRunners)).to.deep.equal([1, 1]);
  });

  it('is found before the event of its claim has arrived, by one look', async () => {
    const { a, b, nomad } = replicas;
    nomad.muted = true;
    const runner = await a.claim();
    nomad.muted = false;
    expect(b.statistics().usedRunners).to.equal(0);
    const before = nomad.calls.length;
    expect(await Promise.all([b.locate(runner.id), b.locate(runner.id)])).to.deep.equal(
      Array(2).fill({ kind: 'elsewhere', owner: { id: 'a', address: addressOf('a') } }),
    );
    const asked = nomad.calls.slice(before).filter(({ id }) => id === runner.id);
    expect(asked.map(({ op }) => op)).to.deep.equal(['jobs.get']);
    expect(b.statistics().usedRunners).to.equal(1);
  });

  it('is handed to one of both, whoever asks for how many', async () => {
    const { a, b } = replicas;
    const claims = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => (n % 2 ? a : b).claim()));
    const ids = claims.flatMap((claim) => (claim.status === 'fulfilled' ? claim.value.id : []));
    expect(ids).to.have.length(4);
    expect(new Set(ids).size).to.equal(4);
    await settle();
    for (const id of ids) expect([a, b].filter(({ manager }) => manager.owns(id))).to.have.length(1);
  });

  it('is claimed by the one that prepared it before it is by the other', async () => {
    const { a, b, nomad } = replicas;
    const ours = nomad.runnerJobs(7).filter((id) => b.cluster.assignee(id) === 'b');
    for (const id of ours) expect((await b.claim()).id).to.equal(id);
    expect(nomad.runnerJobs(7)).to.include((await b.claim()).id);
    await settle();
    expect(a.statistics()).to.include({ idleRunners: 4, usedRunners: ours.length + 1 });
  });

  it('is gone for both, without a request to Nomad, once its owner returned it', async () => {
    const { a, b, nomad } = replicas;
    const runner = await a.claim();
    await a.manager.return(runner.id);
    await settle();
    const before = nomad.calls.length;
    expect(await b.locate(runner.id)).to.deep.equal({ kind: 'own' });
    expect((await failureOf(() => b.manager.get(runner.id))).code).to.equal('RUNNER_GONE');
    expect(nomad.calls.length).to.equal(before);
  });

  it('is not called gone where nobody can tell who has it', async () => {
    const { a, b, nomad, clock } = replicas;
    nomad.muted = true;
    const runner = await a.claim();
    nomad.before = ({ op }) => {
      if (op === 'jobs.get') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    const failure = await failureOf(b.locate(runner.id));
    expect([failure.code, failure.retryAfterSeconds]).to.deep.equal(['NOMAD_UNREACHABLE', 2]);
    nomad.before = () => gate().promise;
    const frozen = failureOf(b.locate(runner.id));
    await clock.advance(3_000);
    expect((await frozen).code).to.equal('NOMAD_UNREACHABLE');
    nomad.before = () => undefined;
  });

  it('is called gone where its job is not there, or nobody has it', async () => {
    const { b, nomad } = replicas;
    const [idle = ''] = nomad.runnerJobs(7);
    for (const id of [idle, '7-00000000-0000-4000-8000-000000000000', 'nonsense']) {
      expect(await b.locate(id)).to.deep.equal({ kind: 'own' });
      expect((await failureOf(() => b.manager.get(id))).code).to.equal('RUNNER_GONE');
    }
  });

  it('is never of an old specification, from the moment the change was answered anywhere', async () => {
    const { a, b, nomad } = replicas;
    const old = nomad.runnerJobs(7);
    nomad.muted = true; // so b hears nothing of it
    await a.manager.putEnvironment(anEnvironment({ image: 'python:3.14', prewarmingPoolSize: 4 }));
    await settle();
    const failure = await failureOf(b.claim());
    expect(failure.code).to.equal('NO_RUNNER_AVAILABLE');
    nomad.muted = false;
    nomad.cut();
    await replicas.clock.advance(2_000);
    const runner = await b.claim();
    expect(old).not.to.include(runner.id);
    expect(runner.environment.image).to.equal('python:3.14');
  });

  it('is not handed out where its template cannot be read', async () => {
    const { b, nomad } = replicas;
    nomad.before = ({ op, id }) => {
      if (op === 'jobs.get' && id === 'template-7') throw new ServiceError('NOMAD_REJECTED', 'no');
    };
    expect((await failureOf(b.claim())).code).to.equal('NOMAD_REJECTED');
    nomad.before = () => undefined;
  });

  it('goes with its environment, whoever has it and wherever that is deleted', async () => {
    const { a, b, nomad, clock } = replicas;
    const runner = await a.claim();
    await settle();
    await b.manager.deleteEnvironment(anEnvironment().id);
    await settle();
    expect(whyGone(runner)).to.deep.equal(['RUNNER_GONE', 'environment-deleted']);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal([]);
    for (const { manager } of [a, b]) expect(manager.environments()).to.deep.equal([]);
    await clock.advance(600_000);
    expect([...nomad.jobDocuments.keys()], 'nobody brings it back').to.deep.equal([]);
  });

  it('is not handed out while its environment is being deleted elsewhere', async () => {
    const { a, b, nomad } = replicas;
    const held = gate();
    nomad.before = ({ op }) => (op === 'purge' ? held.promise : undefined);
    const deleting = b.manager.deleteEnvironment(anEnvironment().id);
    await settle();
    expect((await failureOf(a.claim())).code).to.equal('ENVIRONMENT_NOT_FOUND');
    held.open();
    await deleting;
    await settle();
    expect([...nomad.jobDocuments.keys()]).to.deep.equal([]);
  });
});
