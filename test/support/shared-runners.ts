import { replicaId } from '../../lib/base/ids.js';
import type { Location } from '../../lib/runners/api.js';
import { anEnvironment } from './environments.js';
import { FakeClock, settle } from './fake-clock.js';
import { FakeCluster } from './fake-cluster.js';
import { FakeNomad } from './fake-nomad.js';
import type { RunnersFixture, RunnersOptions } from './runners.js';
import { startRunners } from './runners.js';

export interface SharedRunners extends RunnersFixture {
  readonly cluster: FakeCluster;
  readonly locate: (id: string) => Promise<Location>;
}

/** A service `a` or `b` on a Nomad that both share; both live, and `a` leads. */
export async function startReplica(name: 'a' | 'b', options: RunnersOptions = {}): Promise<SharedRunners> {
  const cluster = new FakeCluster(name);
  const other = name === 'a' ? 'b' : 'a';
  cluster.add(other, addressOf(other));
  cluster.become({ leads: name === 'a' });
  const fixture = await startRunners({ environments: [], ...options, cluster });
  const locate = (id: string): Promise<Location> => fixture.manager.locate(id, new AbortController().signal);
  return { ...fixture, cluster, locate };
}

export function addressOf(name: string): string {
  return `http://${name}.test`;
}

/** Two services on one Nomad and one clock, with the pool of environment 7 full. */
export class Replicas implements AsyncDisposable {
  readonly nomad = new FakeNomad();
  readonly clock = new FakeClock();
  readonly #options: RunnersOptions;
  readonly #all: SharedRunners[] = [];

  private constructor(options: RunnersOptions) {
    this.#options = { ...options, nomad: this.nomad, clock: this.clock };
  }

  static async start(options: RunnersOptions & { readonly poolSize?: number } = {}): Promise<Replicas> {
    const replicas = new Replicas(options);
    const a = await replicas.join('a');
    await replicas.join('b');
    await a.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: options.poolSize ?? 4 }));
    await settle();
    return replicas;
  }

  /** Starts one, again or for the first time. */
  async join(name: 'a' | 'b'): Promise<SharedRunners> {
    const replica = await startReplica(name, this.#options);
    this.#all[name === 'a' ? 0 : 1] = replica;
    return replica;
  }

  get a(): SharedRunners {
    return this.#at(0);
  }

  get b(): SharedRunners {
    return this.#at(1);
  }

  /** Takes one for dead, at the other one, which leads from now on. */
  async lose(name: 'a' | 'b'): Promise<void> {
    const { cluster } = name === 'a' ? this.b : this.a;
    cluster.remove(replicaId(name));
    cluster.become({ leads: true });
    await settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map(({ manager }) => manager.stop()));
  }

  #at(position: number): SharedRunners {
    const replica = this.#all[position];
    if (!replica) throw new Error('that one was not started');
    return replica;
  }
}
