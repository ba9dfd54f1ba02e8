import { expect } from 'chai';
import { SimulatedReplica } from './support/simulated-replica.js';
import type { Capability } from './support/simulated-world.js';
import { seededRandom, SimulatedWorld } from './support/simulated-world.js';

describe('a replica that Nomad does not let take part', () => {
  let world: SimulatedWorld;

  beforeEach(() => {
    world = new SimulatedWorld(seededRandom(1));
  });

  /** Two replicas, of which `a` leads. */
  async function startTwo(): Promise<[SimulatedReplica, SimulatedReplica]> {
    const a = await SimulatedReplica.start(world, 'a');
    await world.advance(3_000);
    const b = await SimulatedReplica.start(world, 'b');
    await world.advance(3_000);
    return [a, b];
  }

  function warnings({ log }: SimulatedReplica): string[] {
    return log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
  }

  for (const capability of ['list', 'write'] satisfies Capability[]) {
    it(`neither leads nor is told of without "${capability}", says so once, and comes back by itself`, async () => {
      const a = new SimulatedReplica(world, 'a');
      a.process.capabilities.delete(capability);
      await a.cluster.start();
      await world.advance(60_000);
      expect([a.leads, a.cluster.isInformed]).to.deep.equal([false, false]);
      expect(a.cluster.trouble).to.include(`lacks "${capability}" of variables { path "serai/*" {`);
      expect(a.cluster.assignee('anything'), 'whatever there is').to.equal(a.cluster.self);
      a.process.capabilities.add(capability);
      await world.advance(5_000);
      expect([a.leads, a.cluster.isInformed, a.cluster.trouble]).to.deep.equal([true, true, undefined]);
      expect(warnings(a)).to.have.length(1);
    });
  }

  it('does not know the others without "read", and takes nobody for dead', async () => {
    const [a] = await startTwo();
    const c = new SimulatedReplica(world, 'c');
    c.process.capabilities.delete('read');
    await c.cluster.start();
    await world.advance(20_000);
    expect(c.cluster.isInformed).to.equal(false);
    expect(c.cluster.trouble).to.include('lacks "read"');
    expect(a.living, 'of those that knew each other').to.include.members(['a', 'b']);
  });

  it('serves on when the right is taken away: the others go on without it', async () => {
    const [a, b] = await startTwo();
    a.process.capabilities.delete('write');
    await world.advance(6_000);
    expect([a.leads, a.living, a.cluster.isFenced]).to.deep.equal([false, ['b'], false]);
    expect(a.cluster.find(b.cluster.self)).to.not.equal(undefined);
    await world.advance(30_000);
    expect([b.leads, b.living]).to.deep.equal([true, ['b']]);
  });

  it('has no trouble with a request that fails now and then, and has with one that fails for 15 s', async () => {
    const [a] = await startTwo();
    a.process.isCutOff = true;
    await world.advance(12_000);
    expect(a.cluster.trouble).to.equal(undefined);
    await world.advance(15_000);
    expect(a.cluster.trouble).to.include('did not answer in time');
    a.process.isCutOff = false;
    await world.advance(6_000);
    expect(a.cluster.trouble).to.equal(undefined);
  });

  it('says where entries cannot be removed, and takes its part all the same', async () => {
    const [a, b] = await startTwo();
    a.process.capabilities.delete('destroy');
    b.kill();
    await world.advance(62 * 60_000);
    expect(warnings(a).filter((each) => each.includes('lacks "destroy"'))).to.have.length(1);
    expect([a.leads, a.cluster.trouble]).to.deep.equal([true, undefined]);
  }).timeout(30_000);
});
