import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import { replicaId, systemRandomness } from '../../lib/base/ids.js';
import { silentLogger } from '../../lib/base/log.js';
import { SharedCluster } from '../../lib/cluster/shared-cluster.js';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { NomadClient } from '../../lib/nomad/client.js';
import type { Service } from '../../lib/service.js';
import { createService } from '../../lib/service.js';
import { nomadClientConfig } from '../support/nomad-client.js';
import { configFor } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

describe('replicas on the embedded agent', () => {
  let agent: DevAgent;
  let client: NomadClient;

  beforeEach(async () => {
    agent = new DevAgent({ driver: 'simulated' });
    await agent.start();
    client = new NomadClient(nomadClientConfig(agent.address), { clock: systemClock, log: silentLogger });
  });

  afterEach(async () => {
    await client.stop();
    await agent.stop();
  });

  function replica(name: string): SharedCluster {
    return new SharedCluster({
      self: replicaId(name),
      address: () => `http://${name}:7200`,
      variables: client.variables,
      clock: systemClock,
      randomness: systemRandomness,
      log: silentLogger,
    });
  }

  it('find each other, agree on who leads and who prepares what, and take over from one that stops', async () => {
    const [a, b] = [replica('a'), replica('b')];
    await a.start();
    await eventually('a lone replica to lead', () => a.leads);
    await b.start();
    const all = [
      { id: 'a', address: 'http://a:7200' },
      { id: 'b', address: 'http://b:7200' },
    ];
    await eventually('both to know both', () => a.living().length === 2 && b.living().length === 2);
    expect(a.living()).to.deep.equal(all);
    expect(b.living()).to.deep.equal(all);
    expect(b.find(a.self)).to.deep.equal(all[0]);
    for (const name of ['x', 'y', 'z']) expect(a.assignee(name)).to.equal(b.assignee(name));
    expect([a.leads, b.leads]).to.deep.equal([true, false]);
    await a.stop();
    expect((await client.variables.list('serai/')).map(({ path }) => path)).to.deep.equal([
      'serai/replicas/b',
    ]);
    await eventually('the other to lead', () => b.leads && b.living().length === 1);
    await b.stop();
    expect(await client.variables.list('serai/')).to.deep.equal([]);
  });

  describe('as services', () => {
    let service: Service;

    afterEach(() => service.stop());

    async function start(settings: Record<string, string>): Promise<void> {
      service = createService(configFor(agent.address, { SERAI_CLUSTER_REPLICA: 'one', ...settings }), {
        log: silentLogger,
      });
      await service.start();
      await eventually('the service to have read Nomad', () => service.ready);
    }

    it('say where they are, with the address that they listen on', async () => {
      await start({ SERAI_CLUSTER_SECRET: 'x'.repeat(16) });
      const told = async () => (await client.variables.get('serai/replicas/one'))?.items['address'];
      await eventually('an address', async () => (await told()) === service.url);
      await service.stop();
      expect(await client.variables.list('serai/')).to.deep.equal([]);
    });

    it('answer 503 once a second process has their name, which serves', async () => {
      await start({ SERAI_CLUSTER_SECRET: 'x'.repeat(16) });
      const first = service;
      await start({ SERAI_CLUSTER_SECRET: 'x'.repeat(16) });
      const statusOf = async ({ url }: Service): Promise<number> =>
        (await fetch(`${url}/api/v1/version`, { headers: { connection: 'close' } })).status;
      await eventually('the first to be fenced', async () => (await statusOf(first)) === 503);
      expect(await statusOf(service)).to.equal(200);
      await first.stop();
      expect(await client.variables.get('serai/replicas/one'), 'the name of the second').to.not.equal(
        undefined,
      );
    });

    it('leave the variables alone without a secret', async () => {
      await start({});
      expect(await client.variables.list('')).to.deep.equal([]);
    });
  });
});
