import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { environmentId } from '../../lib/base/ids.js';
import { createEnvironment } from '../../lib/environments/environment.js';
import { createTemplateJob, parseTemplateJob, parseTemplateJobId } from '../../lib/environments/template.js';
import type { WireJob } from '../../lib/nomad/wire.js';
import { anEnvironment, theBaseJob } from '../support/environments.js';

const base = theBaseJob();

/** A job as Nomad gives it back: keys in another order, defaults and its own fields filled in. */
function asNomadReturnsIt(job: WireJob): WireJob {
  const filled = JSON.parse(JSON.stringify(job), (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).reverse());
  }) as WireJob;
  for (const group of filled.TaskGroups ?? []) {
    group.Scaling = null;
    if (group.Networks?.length === 0) group.Networks = null;
    for (const network of group.Networks ?? []) {
      for (const port of network.DynamicPorts ?? [])
        Object.assign(port, { HostNetwork: 'default', Value: 0 });
    }
    for (const task of group.Tasks ?? [])
      Object.assign(task.Resources ?? {}, { Cores: 0, DiskMB: 0, IOPS: 0 });
  }
  return { ...filled, Status: 'running', Version: 3, CreateIndex: 5, ModifyIndex: 9, JobModifyIndex: 8 };
}

describe('template jobs', () => {
  it('lay an environment out in the two groups', () => {
    const job = createTemplateJob(
      anEnvironment({ memoryLimit: 40, networkAccess: true, exposedPorts: [8080], environment: { A: '1' } }),
      base,
      'bridge',
    );
    const [main, config] = job.TaskGroups ?? [];
    expect(job.ID).to.equal('template-7');
    expect(job.Type).to.equal('batch');
    expect(job.Meta).to.have.key('serai_spec');
    expect(main).to.include({ Name: 'default-group', Count: 1 });
    expect(main?.Networks).to.deep.equal([
      { Mode: 'bridge', DynamicPorts: [{ Label: 'port-8080', To: 8080 }] },
    ]);
    const task = main?.Tasks?.[0];
    expect(task?.Config).to.deep.include({
      image: 'python:3.13-slim',
      command: 'sleep',
      args: ['infinity'],
      init: true,
    });
    expect(task?.Config).not.to.have.any.keys('network_mode', 'ports');
    expect(task?.Resources).to.deep.equal({ CPU: 100, MemoryMB: 40, MemoryMaxMB: 40 });
    expect(config).to.include({ Name: 'config', Count: 0 });
    expect(config?.Meta).to.deep.equal({
      used: 'false',
      prewarmingPoolSize: '2',
      serai: '{"v":1,"name":"Python","environment":{"A":"1"}}',
    });
  });

  it('shut the network off where there is no access, and reserve no more than the base job says', () => {
    const job = createTemplateJob(anEnvironment({ memoryLimit: 1024 }), base, 'bridge');
    const main = job.TaskGroups?.[0];
    expect(main?.Networks).to.deep.equal([]);
    expect(main?.Tasks?.[0]?.Config).to.include({ network_mode: 'none' });
    expect(main?.Tasks?.[0]?.Resources).to.deep.equal({ CPU: 100, MemoryMB: 64, MemoryMaxMB: 1024 });
  });

  it('have Docker publish the ports in the network of the host', () => {
    const environment = anEnvironment({ networkAccess: true, exposedPorts: [80] });
    const job = createTemplateJob(environment, base, 'host');
    expect(job.TaskGroups?.[0]?.Tasks?.[0]?.Config).to.deep.include({ ports: ['port-80'] });
  });

  it('leave the base job as it is', () => {
    const before = JSON.stringify(base.document);
    createTemplateJob(anEnvironment(), base, 'bridge');
    expect(JSON.stringify(base.document)).to.equal(before);
  });

  it('are read back as the environment that was written, hash included', () => {
    const text = fc.string({ minLength: 1 });
    const fields = fc.record({
      id: fc.nat().map(environmentId),
      image: text,
      prewarmingPoolSize: fc.nat({ max: 1000 }),
      cpuLimit: fc.integer({ min: 1, max: 10_000 }),
      memoryLimit: fc.integer({ min: 10, max: 100_000 }),
      networkAccess: fc.boolean(),
      exposedPorts: fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { maxLength: 4 }),
      name: fc.option(text, { nil: undefined }),
      user: fc.option(text, { nil: undefined }),
      environment: fc.dictionary(fc.stringMatching(/^[A-Z_]{1,8}$/), fc.string()),
    });
    fc.assert(
      fc.property(fields, (value) => {
        const environment = createEnvironment(value);
        const job = asNomadReturnsIt(createTemplateJob(environment, base, 'bridge'));
        expect(parseTemplateJob(job)).to.deep.equal({ kind: 'environment', environment, foreign: false });
      }),
    );
  });

  it('of another tool are read too, and marked as such', () => {
    const job = createTemplateJob(anEnvironment(), base, 'bridge');
    const meta = job.TaskGroups?.[1]?.Meta ?? {};
    delete meta.serai;
    delete job.Meta;
    const task = job.TaskGroups?.[0]?.Tasks?.[0];
    Object.assign(task?.Config ?? {}, { network_mode: '' });
    if (job.TaskGroups?.[0]) {
      job.TaskGroups[0].Networks = [
        { Mode: 'cni/secure-bridge', DynamicPorts: [{ Label: '8080', To: 8080 }] },
      ];
    }
    const parsed = parseTemplateJob(job);
    expect(parsed).to.deep.include({ kind: 'environment', foreign: true });
    expect(parsed.kind === 'environment' && parsed.environment).to.deep.include({
      prewarmingPoolSize: 2,
      networkAccess: true,
      exposedPorts: [8080],
      name: undefined,
      environment: {},
    });
  });

  it('that cannot be understood are told with a reason and never throw', () => {
    const good = (): WireJob => createTemplateJob(anEnvironment(), base, 'bridge');
    const bad: [string, (job: WireJob) => void][] = [
      ['id', (job) => (job.ID = 'template-x')],
      ['default-task', (job) => (job.TaskGroups = null)],
      ['config', (job) => job.TaskGroups?.pop()],
      ['image', (job) => delete job.TaskGroups?.[0]?.Tasks?.[0]?.Config?.image],
      [
        'prewarmingPoolSize',
        (job) => Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { prewarmingPoolSize: '-1' }),
      ],
      ['serai', (job) => Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { serai: '{"v":2}' })],
      ['serai', (job) => Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { serai: '{' })],
      [
        'serai',
        (job) => Object.assign(job.TaskGroups?.[1]?.Meta ?? {}, { serai: '{"v":1,"environment":{"A":1}}' }),
      ],
    ];
    for (const [word, spoil] of bad) {
      const job = good();
      spoil(job);
      const parsed = parseTemplateJob(job);
      expect(parsed.kind).to.equal('unreadable');
      expect(parsed.kind === 'unreadable' && parsed.reason).to.contain(word);
    }
  });

  it('of the transcripts that are no templates are told as unreadable', () => {
    const file = new URL('../fixtures/nomad/http/job.json', import.meta.url);
    const exchange = JSON.parse(readFileSync(file, 'utf8')) as { response: { body: WireJob } };
    expect(parseTemplateJob(exchange.response.body).kind).to.equal('unreadable');
  });

  it('are recognised by the exact form of their id', () => {
    expect(parseTemplateJobId('template-10')).to.equal(10);
    for (const id of [
      'template-',
      'template-01',
      'template-1a',
      'template-1-x',
      '1-template',
      'template--1',
    ]) {
      expect(parseTemplateJobId(id), id).to.equal(undefined);
    }
  });
});
