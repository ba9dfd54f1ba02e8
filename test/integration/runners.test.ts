import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { replicaId, systemRandomness } from '../../lib/base/ids.js';
import { Standalone } from '../../lib/cluster/standalone.js';
import { silentLogger } from '../../lib/base/log.js';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import { EnvironmentStore } from '../../lib/environments/store.js';
import { NomadClient } from '../../lib/nomad/client.js';
import type { WireAllocation, WireJob } from '../../lib/nomad/wire.js';
import type { EnvironmentStatistics } from '../../lib/protocol/http.js';
import { RunnerManager } from '../../lib/runners/manager.js';
import type { ClaimedRunner } from '../../lib/runners/runner.js';
import { anEnvironment, theBaseJob } from '../support/environments.js';
import { failureOf } from '../support/failures.js';
import { nomadClientConfig } from '../support/nomad-client.js';
import { eventually } from '../support/waiting.js';

const SEVEN = 7 as EnvironmentId;

/** A manager over the real client, and another way to look at the same Nomad. */
class Replica implements AsyncDisposable {
  readonly client: NomadClient;
  readonly manager: RunnerManager;
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
    this.client = new NomadClient(nomadClientConfig(address), { clock: systemClock, log: silentLogger });
    this.manager = new RunnerManager({
      nomad: this.client,
      cluster: new Standalone({ id: replicaId('self'), address: 'http://127.0.0.1:1' }),
      environments: new EnvironmentStore({
        jobs: this.client.jobs,
        base: theBaseJob(),
        networkMode: 'bridge',
      }),
      pool: { startTimeout: 30, reconcileInterval: 300 },
      runners: { maxLifetime: 0, orphanTimeout: 600 },
      clock: systemClock,
      randomness: systemRandomness,
      log: silentLogger,
    });
  }

  async start(): Promise<this> {
    await this.manager.start();
    await eventually('Nomad to be read', () => this.manager.ready);
    return this;
  }

  claim(): Promise<ClaimedRunner> {
    return this.manager.claim({ environmentId: SEVEN, inactivityTimeoutSeconds: 0 });
  }

  get statistics(): EnvironmentStatistics | undefined {
    return this.manager.statistics().find(({ id }) => id === 7);
  }

  untilIdle(count: number): Promise<void> {
    return eventually(`${count} idle runners`, () => {
      const { idleRunners, pendingRunners } = this.statistics ?? {};
      return idleRunners === count && pendingRunners === 0;
    });
  }

  /** Asks Nomad directly. */
  async ask<T>(method: string, path: string): Promise<T> {
    const response = await fetch(this.#address + path, { method, headers: { connection: 'close' } });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  async runnerJobs(): Promise<string[]> {
    const rows = await this.ask<WireJob[]>('GET', '/v1/jobs?prefix=7-');
    return rows.map(({ ID }) => ID).sort();
  }

  async allocationOf(jobId: string): Promise<WireAllocation> {
    const all = await this.ask<WireAllocation[]>('GET', `/v1/job/${jobId}/allocations`);
    const [newest] = all.sort((a, b) => b.CreateIndex - a.CreateIndex);
    if (!newest) throw new Error(`no allocation of ${jobId}`);
    return newest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.manager.stop();
    await this.client.stop();
  }
}

describe('runners on the embedded agent', function () {
  this.timeout(60_000);
  let agent: DevAgent;
  beforeEach(async () => {
    agent = new DevAgent({ driver: 'process' });
    await agent.start();
  });
  afterEach(() => agent.stop());

  it('are registered, claimed, returned and refilled', async () => {
    await using replica = await new Replica(agent.address).start();
    const { manager } = replica;
    expect(await manager.putEnvironment(anEnvironment())).to.equal('created');
    await replica.untilIdle(2);
    const runner = await replica.claim();
    const job = await replica.ask<WireJob>('GET', `/v1/job/${runner.id}`);
    expect(job.TaskGroups?.find(({ Name }) => Name === 'config')?.Meta).to.include({
      used: 'true',
      timeout: '0',
    });
    expect((await replica.allocationOf(runner.id)).ID).to.equal(runner.allocationId);
    await replica.untilIdle(2);
    await manager.return(runner.id);
    expect(await replica.runnerJobs())
      .to.have.length(2)
      .and.not.to.include(runner.id);
    expect(await manager.putEnvironment(anEnvironment())).to.equal('unchanged');
    await manager.deleteEnvironment(SEVEN);
    expect(await replica.ask<WireJob[]>('GET', '/v1/jobs')).to.deep.equal([]);
  });

  it('are found by the next start of the service as they were', async () => {
    const before = await new Replica(agent.address).start();
    await before.manager.putEnvironment(anEnvironment());
    await before.untilIdle(2);
    const runner = await before.claim();
    await before.untilIdle(2);
    const jobs = await before.runnerJobs();
    await before[Symbol.asyncDispose]();
    expect(runner.runnerSignal.aborted).to.equal(true);
    await using after = await new Replica(agent.address).start();
    expect(after.statistics).to.include({ idleRunners: 2, usedRunners: 1, pendingRunners: 0 });
    expect(await after.runnerJobs()).to.deep.equal(jobs);
    expect(after.manager.get(runner.id).allocationId).to.equal(runner.allocationId);
    expect(after.manager.environments()).to.deep.equal([anEnvironment()]);
    await after.manager.return(runner.id);
  });

  it('are gone for their client when their task is started anew, and idle again where they have none', async () => {
    await using replica = await new Replica(agent.address).start();
    await replica.manager.putEnvironment(anEnvironment());
    await replica.untilIdle(2);
    const runner = await replica.claim();
    await replica.untilIdle(2);
    const [idle = ''] = (await replica.runnerJobs()).filter((id) => id !== runner.id);
    const { ID } = await replica.allocationOf(idle);
    await replica.ask('PUT', `/v1/client/allocation/${ID}/restart`);
    await replica.ask('PUT', `/v1/client/allocation/${runner.allocationId}/restart`);
    await eventually('the claim to end', () => runner.runnerSignal.aborted);
    expect(await runner.whatHappened(0)).to.equal('restarted');
    await eventually('its job to be purged', async () => !(await replica.runnerJobs()).includes(runner.id));
    await replica.untilIdle(2);
    expect(await replica.runnerJobs()).to.include(idle);
    expect(replica.statistics?.usedRunners).to.equal(0);
  });

  it('follow what is done to their jobs and allocations from outside', async () => {
    await using replica = await new Replica(agent.address).start();
    await replica.manager.putEnvironment(anEnvironment());
    await replica.untilIdle(2);
    const runner = await replica.claim();
    await replica.untilIdle(2);
    const [idle = '', stopped = ''] = (await replica.runnerJobs()).filter((id) => id !== runner.id);
    const { ID } = await replica.allocationOf(stopped);
    await replica.ask('DELETE', `/v1/job/${runner.id}?purge=true`);
    await replica.ask('DELETE', `/v1/job/${idle}?purge=true`);
    await replica.ask('PUT', `/v1/allocation/${ID}/stop`);
    await replica.ask('DELETE', '/v1/job/template-7?purge=true');
    await eventually('the claim to end', () => runner.runnerSignal.aborted);
    await replica.untilIdle(2);
    await eventually('the template to be back', async () => {
      return (await replica.ask<WireJob[]>('GET', '/v1/jobs?prefix=template-7')).length === 1;
    });
    expect(await replica.runnerJobs())
      .to.include(stopped)
      .and.not.to.include.members([idle]);
    expect((await replica.allocationOf(stopped)).ID).not.to.equal(ID);
  });

  it('of an old specification are replaced when the environment changes', async () => {
    await using replica = await new Replica(agent.address).start();
    await replica.manager.putEnvironment(anEnvironment());
    await replica.untilIdle(2);
    const old = await replica.runnerJobs();
    await replica.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 3 }));
    await replica.untilIdle(3);
    expect(await replica.runnerJobs()).to.include.members(old);
    await replica.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 3, image: 'other:1' }));
    await eventually('the old ones to go', async () => {
      return !(await replica.runnerJobs()).some((id) => old.includes(id));
    });
    await replica.untilIdle(3);
  });

  it('are handed to one of two services that share a Nomad', async () => {
    await using one = await new Replica(agent.address).start();
    await one.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 6 }));
    await one.untilIdle(6);
    await using other = await new Replica(agent.address).start();
    const claims = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => (n % 2 ? one.claim() : other.claim())),
    );
    const ids = claims.flatMap((result) => (result.status === 'fulfilled' ? result.value.id : []));
    expect(ids.length).to.be.greaterThan(3);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('and their environment come back when Nomad lost everything', async () => {
    await using replica = await new Replica(agent.address).start();
    await replica.manager.putEnvironment(anEnvironment());
    await replica.untilIdle(2);
    const runner = await replica.claim();
    const port = Number(new URL(agent.address).port);
    await agent.stop();
    await eventually('the outage to be seen', () => !replica.manager.nomadReachable);
    expect(runner.runnerSignal.aborted).to.equal(false); // nobody knows yet what became of it
    expect((await failureOf(replica.claim())).code).to.equal('NOMAD_UNREACHABLE');
    agent = new DevAgent({ driver: 'process', port });
    await agent.start();
    await eventually('Nomad to be back', () => replica.manager.nomadReachable);
    expect(runner.runnerSignal.aborted).to.equal(true);
    await replica.untilIdle(2);
    await eventually('the template to be back', async () => {
      return (await replica.ask<WireJob[]>('GET', '/v1/jobs?prefix=template-7')).length === 1;
    });
    const next = await replica.claim();
    await replica.manager.return(next.id);
  });

  it('keep their environment when its template died', async () => {
    const before = await new Replica(agent.address).start();
    await before.manager.putEnvironment(anEnvironment({ prewarmingPoolSize: 1 }));
    await before.untilIdle(1);
    await before.ask('DELETE', '/v1/job/template-7');
    await before[Symbol.asyncDispose]();
    await using after = await new Replica(agent.address).start();
    expect(after.manager.environments().map(({ id }) => id)).to.deep.equal([7]);
    await eventually('the template to run again', async () => {
      const job = await after.ask<WireJob>('GET', '/v1/job/template-7');
      return (
        job.Status === 'running' &&
        !job.Stop &&
        (await after.allocationOf('template-7')).ClientStatus === 'running'
      );
    });
    await after.untilIdle(1);
  });
});
