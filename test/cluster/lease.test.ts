import { expect } from 'chai';
import fc from 'fast-check';
import { SimulatedReplica } from './support/simulated-replica.js';
import { seededRandom, SimulatedWorld } from './support/simulated-world.js';

/** What befalls one of the replicas, and for how long. */
const fault = fc.record({
  afterMs: fc.integer({ min: 0, max: 20_000 }),
  replica: fc.nat({ max: 2 }),
  kind: fc.constantFrom('pause', 'cut off', 'restart', 'stop', 'double'),
  lastsMs: fc.integer({ min: 0, max: 60_000 }),
});
type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never;

const network = fc.record({
  delayMs: fc.constantFrom(5, 500, 3000, 20_000),
  lossPercent: fc.constantFrom(0, 0, 10, 30),
});

describe('the lease', () => {
  it('lets no two replicas lead at once, whatever is delayed, lost, stopped or doubled, and one in the end', async function () {
    this.timeout(120_000);
    const scenario = fc.record({
      seed: fc.nat(),
      network,
      replicas: fc.constantFrom(2, 3),
      faults: fc.array(fault, { maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ seed, network: during, replicas, faults }) => {
        const world = new SimulatedWorld(seededRandom(seed));
        const places = new Places(world, replicas);
        const observe = (): void => {
          const leaders = places.all.filter(({ leads }) => leads).map(({ cluster }) => cluster.self);
          expect(leaders, `at ${world.nowMs} ms`).to.have.length.at.most(1);
        };
        world.network = during;
        await places.open();
        await world.advance(10_000, observe);
        for (const each of faults) {
          await world.advance(each.afterMs, observe);
          await places.befall(each);
        }
        await world.advance(80_000, observe);
        world.network = { delayMs: 5, lossPercent: 0 };
        await world.advance(60_000, observe);
        const serving = places.all.filter(({ cluster, process }) => !process.isKilled && !cluster.isFenced);
        const running = serving.filter(({ cluster }) => cluster.state === 'running');
        const names = running.map(({ cluster }) => String(cluster.self)).sort();
        expect(new Set(names), 'one process of each name').to.have.length(names.length);
        for (const each of running)
          expect(each.living, `as ${each.cluster.self} sees it`).to.deep.equal(names);
        expect(running.filter(({ leads }) => leads)).to.have.length(running.length > 0 ? 1 : 0);
        await places.close();
      }),
      { numRuns: 40 },
    );
  });
});

/** Places where replicas run, one after the other and sometimes two of one name. */
class Places {
  readonly all: SimulatedReplica[] = [];
  readonly #world: SimulatedWorld;
  readonly #current: SimulatedReplica[] = [];
  readonly #count: number;

  constructor(world: SimulatedWorld, count: number) {
    this.#world = world;
    this.#count = count;
  }

  async open(): Promise<void> {
    for (let place = 0; place < this.#count; place += 1) await this.#start(place);
  }

  /** Begins a fault; what ends by itself does so in its time. */
  async befall({ replica, kind, lastsMs }: Fault): Promise<void> {
    const place = replica % this.#count;
    const victim = this.#current[place];
    if (!victim) return;
    const { process } = victim;
    switch (kind) {
      case 'pause':
        process.pause();
        this.#world.schedule(lastsMs, () => process.resume());
        return;
      case 'cut off':
        process.isCutOff = true;
        this.#world.schedule(lastsMs, () => (process.isCutOff = false));
        return;
      case 'restart':
        victim.kill();
        await this.#start(place);
        return;
      case 'stop':
        void victim.cluster.stop();
        return;
      case 'double':
        await this.#start(place);
    }
  }

  async close(): Promise<void> {
    const living = this.all.filter(({ process }) => !process.isKilled);
    const stopped = Promise.all(living.map(({ cluster }) => cluster.stop()));
    await this.#world.advance(20_000);
    await stopped;
  }

  async #start(place: number): Promise<void> {
    const replica = await SimulatedReplica.start(this.#world, `r${place}`);
    this.#current[place] = replica;
    this.all.push(replica);
  }
}
