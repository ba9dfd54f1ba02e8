import type { Replica } from '../../lib/cluster/api.js';
import { FakeCluster } from './fake-cluster.js';
import type { TestApiOptions } from './test-api.js';
import { TestApi } from './test-api.js';
import { Wire } from './wire.js';

export const SECRET = 'a-secret-of-the-replicas';

/**
 * Two replicas on fakes: clients ask `near`, and the runners are with `far`.
 */
export class ApiPair implements AsyncDisposable {
  readonly near: TestApi;
  readonly far: TestApi;
  readonly nearCluster: FakeCluster;
  readonly farCluster: FakeCluster;
  readonly farReplica: Replica;
  /** How `near` reaches `far`. */
  readonly wire: Wire;

  private constructor(parts: Pick<ApiPair, 'near' | 'far' | 'nearCluster' | 'farCluster' | 'wire'>) {
    this.near = parts.near;
    this.far = parts.far;
    this.nearCluster = parts.nearCluster;
    this.farCluster = parts.farCluster;
    this.wire = parts.wire;
    this.farReplica = this.nearCluster.add('far', this.wire.url);
  }

  static async open(options: TestApiOptions = {}, farOptions: TestApiOptions = options): Promise<ApiPair> {
    const nearCluster = new FakeCluster('near');
    const farCluster = new FakeCluster('far');
    const near = await TestApi.open({ ...withSecret(options), cluster: nearCluster });
    const far = await TestApi.open({ ...withSecret(farOptions), cluster: farCluster });
    const wire = await Wire.open(far.server.url);
    return new ApiPair({ near, far, nearCluster, farCluster, wire });
  }

  /** Claims a runner at `far`, of which `near` knows whose it is. */
  async claim(): Promise<string> {
    const claim = await this.far.send('POST', '/runners', { executionEnvironmentId: 1 });
    const { runnerId } = claim.json as { runnerId: string };
    this.near.runners.elsewhere.set(runnerId, this.farReplica);
    return runnerId;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.near.server.stop();
    await this.wire.close();
    await this.far.server.stop();
  }
}

function withSecret(options: TestApiOptions): TestApiOptions {
  return { ...options, settings: { SERAI_CLUSTER_SECRET: SECRET, ...options.settings } };
}
