import { replicaId } from '../../../lib/base/ids.js';
import { SharedCluster } from '../../../lib/cluster/shared-cluster.js';
import { RecordingLogger } from '../../support/test-api.js';
import type { SimulatedWorld } from './simulated-world.js';
import { SimulatedProcess } from './simulated-world.js';

/** A replica in a simulated world, in a process of its own. */
export class SimulatedReplica {
  readonly process: SimulatedProcess;
  readonly cluster: SharedCluster;
  readonly log = new RecordingLogger();

  constructor(world: SimulatedWorld, name: string, address = `http://${name}:7200`) {
    this.process = new SimulatedProcess(world);
    this.cluster = new SharedCluster({
      self: replicaId(name),
      address: () => address,
      variables: this.process.variables,
      clock: this.process,
      randomness: { uuid: () => `boot-${world.random()}`, random: world.random },
      log: this.log,
    });
  }

  static async start(...args: ConstructorParameters<typeof SimulatedReplica>): Promise<SimulatedReplica> {
    const replica = new SimulatedReplica(...args);
    await replica.cluster.start();
    return replica;
  }

  /** Names of those that it takes for living. */
  get living(): string[] {
    return this.cluster.living().map(({ id }) => id);
  }

  /** As `kill -9`. */
  kill(): void {
    this.process.isKilled = true;
  }

  /** True while it leads, as anyone who could see all clocks at once would say. */
  get leads(): boolean {
    return !this.process.isKilled && this.cluster.leads;
  }
}
