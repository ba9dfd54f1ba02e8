import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { anEnvironment } from '../support/environments.js';
import { settle } from '../support/fake-clock.js';
import { task } from '../support/fake-server.js';
import { Replicas } from '../support/shared-runners.js';
import { startRunners } from '../support/runners.js';
import { gate } from '../support/waiting.js';

describe('the pools of several replicas', () => {
  let replicas: Replicas;
  beforeEach(async () => {
    replicas = await Replicas.start();
  });
  afterEach(() => replicas[Symbol.asyncDispose]());

  it('are filled by the one that leads, and known to all', async () => {
    const { a, b, nomad } = replicas;
    a.cluster.become({ leads: false });
    await b.manager.putEnvironment(anEnvironment({ id: 8, prewarmingPoolSize: 3 }));
    await settle();
    expect(nomad.runnerJobs(8)).to.have.length(0);
    a.cluster.become({ leads: true });
    await settle();
    expect(nomad.runnerJobs(8)).to.have.length(3);
    for (const replica of [a, b]) expect(replica.statistics(8)).to.include({ idleRunners: 3 });
  });

  it('are known to one that looked at a runner before it ran, and heard that it runs before the answer came', async () => {
    const { a, b, nomad } = replicas;
    const held = gate();
    nomad.autoStart = false;
    nomad.after = ({ op, id }) =>
      op === 'allocations.list' && id.startsWith('8-') ? held.promise : undefined;
    await a.manager.putEnvironment(anEnvironment({ id: 8, prewarmingPoolSize: 1 }));
    await settle();
    const [id = ''] = nomad.runnerJobs(8);
    const { id: allocationId } = nomad.place(id);
    await settle(); // the one that did not register it looks at it
    nomad.run(allocationId);
    await settle();
    held.open();
    await settle();
    for (const replica of [a, b])
      expect(replica.statistics(8)).to.include({ idleRunners: 1, pendingRunners: 0 });
  });

  it('are not filled any more by one whose lease ran out while it did so', async () => {
    const { a, nomad } = replicas;
    a.cluster.leads = false; // time alone ended it: nobody tells
    await a.claim();
    await settle();
    expect(nomad.runnerJobs(7)).to.have.length(4);
    const held = gate();
    a.cluster.leads = true;
    nomad.before = ({ op, id }) => (op === 'register' && id.startsWith('8-') ? held.promise : undefined);
    await a.manager.putEnvironment(anEnvironment({ id: 8, prewarmingPoolSize: 30 }));
    await settle();
    a.cluster.become({ leads: false });
    held.open();
    await settle();
    expect(nomad.runnerJobs(8), 'those on their way').to.have.length(20);
    expect(a.statistics(8)).to.include({ idleRunners: 20, pendingRunners: 0 });
  });

  it('are led by another one from where the last one stopped', async () => {
    const { a, b, nomad } = replicas;
    await b.claim();
    await a.manager.stop();
    const failed = nomad.runnerJobs(7).at(-1) ?? '';
    nomad.update(nomad.allocationOf(failed).id, {
      clientStatus: 'failed',
      tasks: { 'default-task': task('dead') },
    });
    await settle();
    expect(b.statistics()).to.include({ idleRunners: 3, failedRunners: 0 });
    expect(nomad.callsOf('purge')).to.deep.equal([]);
    await replicas.lose('a');
    await replicas.clock.advance(1_000);
    expect(nomad.jobDocuments.has(failed)).to.equal(false);
    expect(b.statistics()).to.include({ idleRunners: 4, usedRunners: 1 });
  });

  it('lose a surplus runner only where no client of another replica has it', async () => {
    const { a, b, nomad } = replicas;
    const claimed: string[] = [];
    // Between the decision and the write, b hands out whatever is taken away.
    nomad.before = async ({ op, id }) => {
      if (op !== 'register' || id.startsWith('template') || claimed.length > 0) return;
      claimed.push('');
      claimed[0] = (await b.claim()).id;
    };
    await a.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 0 }));
    await settle();
    await settle();
    expect(nomad.runnerJobs(7)).to.deep.equal(claimed);
    expect(nomad.metaOf(claimed[0] ?? '')).to.include({ used: 'true', owner: 'b' });
    expect(b.manager.get(claimed[0] ?? '').runnerSignal.aborted).to.equal(false);
    expect(await a.locate(claimed[0] ?? '')).to.have.nested.property('owner.id', 'b');
  });

  it('get a template back that was purged by accident, once', async () => {
    const { nomad } = replicas;
    nomad.purgeJob('template-7');
    await settle();
    expect(nomad.callsOf('register').filter((id) => id === 'template-7')).to.have.length(2);
    for (const { manager } of [replicas.a, replicas.b]) expect(manager.environments()).to.have.length(1);
  });

  it('end with a deletion whose replica was ended in the middle of it', async () => {
    const { a, b, nomad, clock } = replicas;
    nomad.before = ({ op }) => {
      if (op === 'purge') throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    await a.manager.deleteEnvironment(anEnvironment().id).catch(() => undefined);
    await a.manager.stop();
    nomad.before = () => undefined;
    await replicas.lose('a');
    await clock.advance(300_000);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal([]);
    expect(b.manager.environments()).to.deep.equal([]);
  });

  it('are gone with a deletion of which one replica heard nothing', async () => {
    const { a, b, nomad, clock } = replicas;
    a.cluster.become({ leads: false });
    b.cluster.become({ leads: true });
    nomad.muted = true;
    await a.manager.deleteEnvironment(anEnvironment().id);
    nomad.muted = false;
    await clock.advance(300_000);
    expect([...nomad.jobDocuments.keys()]).to.deep.equal([]);
    expect(b.manager.environments()).to.deep.equal([]);
  });

  it('tell of each idle runner to one replica, and to another when that one dies', async () => {
    const { a, b, nomad } = replicas;
    const told = { a: new Map<string, AbortSignal>(), b: new Map<string, AbortSignal>() };
    a.manager.listen({ ready: ({ id, taskSignal }) => void told.a.set(id, taskSignal) });
    b.manager.listen({ ready: ({ id, taskSignal }) => void told.b.set(id, taskSignal) });
    const all = nomad.runnerJobs(7);
    const ofA = all.filter((id) => a.cluster.assignee(id) === 'a');
    expect([...told.a.keys()]).to.have.members(ofA);
    expect([...told.b.keys()]).to.have.members(all.filter((id) => !ofA.includes(id)));
    await replicas.lose('a');
    expect([...told.b.keys()]).to.have.members(all);
    b.cluster.add('a', 'http://a.test');
    for (const [id, signal] of told.b) expect(signal.aborted, id).to.equal(ofA.includes(id));
  });
});

describe('a service that is alone', () => {
  it('says so once where another one claims runners of its Nomad', async () => {
    await using replicas = await Replicas.start();
    const { nomad } = replicas;
    const { manager, warnings } = await startRunners({ nomad, environments: [] });
    await replicas.a.claim();
    await replicas.a.claim();
    await settle();
    expect(warnings.filter((message) => message.includes('cluster.secret'))).to.have.length(1);
    await manager.stop();
  });
});
