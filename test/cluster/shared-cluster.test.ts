import { expect } from 'chai';
import { replicaId } from '../../lib/base/ids.js';
import { LEASE_PATH } from '../../lib/cluster/paths.js';
import { gate } from '../support/waiting.js';
import { SimulatedReplica } from './support/simulated-replica.js';
import { seededRandom, SimulatedWorld } from './support/simulated-world.js';

describe('a replica among others', () => {
  let world: SimulatedWorld;
  let a: SimulatedReplica;
  let b: SimulatedReplica;

  beforeEach(async () => {
    world = new SimulatedWorld(seededRandom(1));
    a = await SimulatedReplica.start(world, 'a');
    await world.advance(3_000);
    b = await SimulatedReplica.start(world, 'b');
    await world.advance(3_000);
    expect([a.living, b.living, a.leads, b.leads]).to.deep.equal([['a', 'b'], ['a', 'b'], true, false]);
  });

  /** What its listeners are told from now on. */
  function tellings({ cluster }: SimulatedReplica): string[][] {
    const told: string[][] = [];
    cluster.onChange(() => told.push(cluster.living().map(({ id }) => id)));
    return told;
  }

  async function stop(...replicas: SimulatedReplica[]): Promise<void> {
    const stopped = Promise.all(replicas.map(({ cluster }) => cluster.stop()));
    await world.advance(10_000);
    await stopped;
  }

  it('gives name and lease back when it stops, so that another leads at once, and leaves nothing behind', async () => {
    await stop(a, a);
    expect([b.living, b.leads]).to.deep.equal([['b'], true]);
    await stop(b);
    expect(world.store.list('')).to.deep.equal([]);
    expect(world.pending).to.equal(0);
  });

  it('stops in time though Nomad does not answer', async () => {
    a.process.isCutOff = true;
    const stopping = a.cluster.stop();
    await world.advance(4_100);
    await stopping;
    expect(a.cluster.state).to.equal('stopped');
    expect(a.leads).to.equal(false);
    await stop(b);
    expect(world.pending).to.equal(0);
  });

  it('takes another for dead after 20 s of silence, and takes its lease', async () => {
    a.kill();
    await world.advance(15_000);
    expect([b.living, b.leads]).to.deep.equal([['a', 'b'], false]);
    await world.advance(10_000);
    expect([b.living, b.leads]).to.deep.equal([['b'], true]);
  });

  it('finds one that comes back where it is then, and counts it as living from its first heartbeat', async () => {
    a.kill();
    await world.advance(23_000);
    const again = await SimulatedReplica.start(world, 'a', 'http://elsewhere:1');
    await world.advance(2_500);
    expect([again.living, again.leads, b.leads]).to.deep.equal([['a', 'b'], false, true]);
    expect(b.cluster.find(again.cluster.self)?.address).to.equal('http://elsewhere:1');
  });

  it('learns within 30 s that one is elsewhere though it was never silent', async () => {
    a.kill();
    await SimulatedReplica.start(world, 'a', 'http://elsewhere:1');
    await world.advance(33_000);
    expect(b.cluster.find(a.cluster.self)?.address).to.equal('http://elsewhere:1');
  });

  it('counts silence only while it listens: neither its own pause nor that of Nomad makes the others dead', async () => {
    b.process.pause();
    await world.advance(60_000);
    b.process.resume();
    const told = tellings(b);
    await world.advance(30_000);
    for (const replica of [a, b]) replica.process.isCutOff = true;
    await world.advance(60_000);
    expect([a.leads, b.leads], 'leading, without Nomad').to.deep.equal([false, false]);
    b.process.isCutOff = false;
    await world.advance(6_000); // it looks, and nobody had a chance to give a sign of life
    a.process.isCutOff = false;
    await world.advance(30_000);
    expect(told.filter((living) => !living.includes('a'))).to.deep.equal([]);
    expect([a.living, a.leads, b.leads]).to.deep.equal([['a', 'b'], true, false]);
  });

  it('leads no more 15 s after its last raise was sent, though the answer waited in a process that was stopped', async () => {
    world.network = { delayMs: 2_000, lossPercent: 0 };
    const countOf = (): string | undefined => world.store.get(LEASE_PATH)?.items['count'];
    const before = countOf();
    while (countOf() === before) await world.advance(10);
    a.process.pause();
    await world.advance(60_000);
    expect([a.leads, b.leads]).to.deep.equal([false, true]);
    a.process.resume();
    await world.advance(0);
    expect([a.leads, b.leads]).to.deep.equal([false, true]);
  });

  it('takes one whose connections are refused for dead until a heartbeat after that', async () => {
    const told = tellings(b);
    b.cluster.suspect(a.cluster.self);
    expect(told, 'at once').to.deep.equal([['b']]);
    expect(b.cluster.find(a.cluster.self)).to.equal(undefined);
    expect(b.cluster.assignee('anything')).to.equal(b.cluster.self);
    a.kill();
    await world.advance(120_000);
    expect(told.filter((living) => living.includes('a'))).to.deep.equal([]);
    const again = await SimulatedReplica.start(world, 'a');
    await world.advance(8_000);
    expect([b.living, again.living]).to.deep.equal([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('looks for one that it has not heard of before it takes that for dead, once for all who ask', async () => {
    const { variables } = b.process;
    const list = variables.list.bind(variables);
    let looks = 0;
    const counted: typeof list = (...args) => {
      looks += 1;
      return list(...args);
    };
    Object.assign(variables, { list: counted });
    const newcomer = await SimulatedReplica.start(world, 'c');
    await world.advance(100); // its first heartbeat, and no look of b
    expect([newcomer.living, b.living]).to.deep.equal([
      ['a', 'b', 'c'],
      ['a', 'b'],
    ]);
    const { signal } = new AbortController();
    const ids = ['c', 'c', 'a', 'nobody'].map(replicaId);
    const sought = Promise.all(ids.map((id) => b.cluster.seek(id, signal)));
    await world.advance(100);
    expect((await sought).map((found) => found?.id)).to.deep.equal(['c', 'c', 'a', undefined]);
    expect(looks).to.equal(1);
  });

  it('believes a new process of one whose connections were refused, before its second heartbeat', async () => {
    a.kill();
    b.cluster.suspect(a.cluster.self);
    const { signal } = new AbortController();
    const dead = b.cluster.seek(a.cluster.self, signal);
    await world.advance(100);
    expect(await dead).to.equal(undefined);
    await SimulatedReplica.start(world, 'a', 'http://elsewhere:1');
    await world.advance(100);
    const back = b.cluster.seek(a.cluster.self, signal);
    await world.advance(100);
    expect(await back).to.deep.equal({ id: 'a', address: 'http://elsewhere:1' });
  });

  it('does not believe a look that was under way when a connection was refused', async () => {
    const path = 'serai/replicas/a';
    const { variables } = b.process;
    const list = variables.list.bind(variables);
    const answer = gate<Awaited<ReturnType<typeof list>>>();
    Object.assign(variables, { list: () => answer.promise });
    await world.advance(2_000);
    const before = world.store.list('serai/');
    a.kill();
    world.store.put(path, world.store.get(path)?.items ?? {});
    b.cluster.suspect(a.cluster.self);
    const told = tellings(b);
    Object.assign(variables, { list });
    answer.open(before);
    await world.advance(60_000);
    expect(told.filter((living) => living.includes('a'))).to.deep.equal([]);
  });

  it('loses its name to a process that starts with it later, and lets go of all that it had', async () => {
    const states: boolean[] = [];
    a.cluster.onChange(() => states.push(a.cluster.isFenced));
    const later = await SimulatedReplica.start(world, 'a');
    await world.advance(6_000);
    expect([a.cluster.isFenced, a.leads, later.cluster.isFenced]).to.deep.equal([true, false, false]);
    expect(states.at(-1)).to.equal(true);
    expect(a.log.lines.filter(({ level }) => level === 'error')).to.have.length(1);
    await world.advance(4_000);
    expect([later.leads, b.leads].filter(Boolean), 'the lease was given back').to.have.length(1);
    expect(world.store.get('serai/replicas/a')).to.not.equal(undefined);
    await stop(a);
    expect(world.store.get('serai/replicas/a'), 'is not removed by the fenced one').to.not.equal(undefined);
  });

  it('is found at its new address at the next look, without being dead, once it is known to have moved', async () => {
    await SimulatedReplica.start(world, 'a', 'http://elsewhere:7200');
    await world.advance(6_000);
    const told = tellings(b);
    expect(b.cluster.find(a.cluster.self)?.address, 'as it was read').to.equal('http://a:7200');
    b.cluster.moved(a.cluster.self);
    expect(b.cluster.find(a.cluster.self)?.address, 'until the look').to.equal('http://a:7200');
    await world.advance(2_000);
    expect(b.cluster.find(a.cluster.self)?.address).to.equal('http://elsewhere:7200');
    expect(told.filter((living) => !living.includes('a'))).to.deep.equal([]);
  });

  it('leaves the name to a process that took it while it was stopping', async () => {
    const later = await SimulatedReplica.start(world, 'a');
    await world.advance(1_000);
    const stopping = a.cluster.stop();
    await world.advance(10_000, () => expect(world.store.get('serai/replicas/a')).to.not.equal(undefined));
    await stopping;
    expect([later.cluster.isFenced, later.living]).to.deep.equal([false, ['a', 'b']]);
  });

  it('does not take a lost answer to its own heartbeat for another process', async () => {
    const { variables } = a.process;
    const put = variables.put.bind(variables);
    let lost = 0;
    Object.assign(variables, {
      put: async (...args: Parameters<typeof put>) => {
        await put(...args);
        lost += 1;
        throw new Error('the answer was lost');
      },
    });
    await world.advance(12_000);
    Object.assign(variables, { put });
    expect(lost).to.be.greaterThan(2);
    await world.advance(10_000);
    expect([a.cluster.isFenced, a.leads, b.living]).to.deep.equal([false, true, ['a', 'b']]);
  });

  it('has the leader remove the entry of one that is dead for an hour, and of no other', async () => {
    b.kill();
    await world.advance(59 * 60_000);
    expect(world.store.get('serai/replicas/b')).to.not.equal(undefined);
    await world.advance(3 * 60_000);
    expect(world.store.list('serai/replicas/').map(({ path }) => path)).to.deep.equal(['serai/replicas/a']);
  }).timeout(30_000);
});
