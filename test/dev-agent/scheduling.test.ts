import { expect } from 'chai';
import type { JobJson } from './support/agent-json.js';
import { sleeper } from './support/raw-agent.js';
import { ScheduledAgent } from './support/scheduled-agent.js';

/** A job whose one task takes this much of the node. */
function sized(id: string, cpu: number, more: object = {}): JobJson {
  const job = sleeper(id, more);
  return JSON.parse(JSON.stringify(job).replace('"CPU":10', `"CPU":${cpu}`)) as JobJson;
}

describe('scheduling of the embedded agent', () => {
  let raw: ScheduledAgent;

  beforeEach(async () => {
    raw = await ScheduledAgent.begin();
  });
  afterEach(() => raw.stop());

  it('places a blocked job once there is room', async () => {
    await raw.register(sized('3-big', 700));
    await raw.running('3-big');
    await raw.register(sized('3-next', 700));
    const evaluations = await raw.settled(
      'the block',
      () => raw.evaluationsOf('3-next'),
      (all) => all.length === 2,
    );
    const first = evaluations.find(({ TriggeredBy }) => TriggeredBy === 'job-register');
    expect(first?.FailedTGAllocs?.['default-group']).to.include({ NodesEvaluated: 1, NodesExhausted: 1 });
    expect(first?.FailedTGAllocs?.['default-group']?.['DimensionExhausted']).to.deep.equal({ cpu: 1 });
    expect(await raw.statusesOf('3-next')).to.deep.equal([]);
    await raw.purge('3-big');
    await raw.running('3-next');
    const blocked = (await raw.evaluationsOf('3-next')).find(({ ID }) => ID === first?.BlockedEval);
    expect(blocked?.Status).to.equal('complete');
  });

  it('cancels what is blocked when its job goes', async () => {
    await raw.register(sized('3-huge', 5000));
    await raw.settled(
      'the block',
      () => raw.evaluationsOf('3-huge'),
      (all) => all.length === 2,
    );
    const purge = await raw.purge('3-huge');
    const all = await raw.settled(
      'the end of the block',
      () => raw.evaluationsOf('3-huge'),
      (evaluations) => evaluations.some(({ Status }) => Status === 'canceled'),
    );
    const canceled = all.find(({ Status }) => Status === 'canceled');
    expect(canceled?.StatusDescription).to.equal(`evaluation "${purge.body.EvalID}" successful`);
  });

  it('says which dimension is exhausted', async () => {
    const job = JSON.parse(
      JSON.stringify(sleeper('3-mem')).replace('"MemoryMB":10', '"MemoryMB":9999'),
    ) as JobJson;
    await raw.register(job);
    const all = await raw.settled(
      'the block',
      () => raw.evaluationsOf('3-mem'),
      (one) => one.length === 2,
    );
    expect(all[0]?.FailedTGAllocs?.['default-group']?.['DimensionExhausted']).to.deep.equal({ memory: 1 });
  });

  it('makes a job that must not exist yet, and refuses one that does', async () => {
    const first = await raw.request('PUT', '/v1/jobs', {
      Job: sleeper('3-new'),
      EnforceIndex: true,
      JobModifyIndex: 0,
    });
    expect(first.status).to.equal(200);
    const again = await raw.request('PUT', '/v1/jobs', {
      Job: sleeper('3-new'),
      EnforceIndex: true,
      JobModifyIndex: 0,
    });
    expect([again.status, again.body]).to.deep.equal([
      500,
      'Enforcing job modify index 0: job already exists',
    ]);
    const absent = await raw.request('PUT', '/v1/jobs', {
      Job: sleeper('3-no'),
      EnforceIndex: true,
      JobModifyIndex: 7,
    });
    expect([absent.status, absent.body]).to.deep.equal([
      500,
      'Enforcing job modify index 7: job does not exist',
    ]);
  });

  it('keeps the version of a job that is registered without a change', async () => {
    const { JobModifyIndex } = await raw.register(sleeper('3-same'));
    await raw.running('3-same');
    const job = await raw.get<JobJson>('/v1/job/3-same');
    expect(await raw.register(job)).to.include({ JobModifyIndex });
    expect((await raw.get<JobJson>('/v1/job/3-same'))['Version']).to.equal(0);
    expect(await raw.statusesOf('3-same')).to.deep.equal(['running/run']);
  });

  it('replaces an allocation whose task changes, and keeps it when its policies do', async () => {
    await raw.register(sleeper('3-up'));
    await raw.running('3-up');
    await raw.register(sleeper('3-up', { RestartPolicy: { Attempts: 5 } }));
    await raw.settled(
      'the update',
      () => raw.evaluationsOf('3-up'),
      (all) => all.every(({ Status }) => Status === 'complete'),
    );
    expect(await raw.statusesOf('3-up')).to.deep.equal(['running/run']);
    await raw.register(sized('3-up', 11, { RestartPolicy: { Attempts: 5 } }));
    const all = await raw.settled(
      'the replacement',
      () => raw.statusesOf('3-up'),
      (now) => now.length === 2 && !now.includes('pending/run'),
    );
    expect(all.sort()).to.deep.equal(['complete/stop', 'running/run']);
  });

  it('places anew what it finds dead when a job changes', async () => {
    await raw.register(sleeper('3-dead'));
    await raw.running('3-dead');
    const [dead] = await raw.allocations('3-dead');
    await raw.agent.faults.killTask(dead?.ID ?? '');
    await raw.settled(
      'the death',
      () => raw.statusesOf('3-dead'),
      (all) => all.includes('failed/run'),
    );
    await raw.register(sleeper('3-dead', { Meta: { any: 'thing' } }));
    await raw.running('3-dead');
    expect(await raw.allocations('3-dead')).to.have.length(2);
  });

  it('gives every dynamic port a number of its own', async () => {
    const ports = Array.from({ length: 20 }, (_value, at) => ({ Label: `port-${at}`, To: 8000 + at }));
    for (const id of ['3-p1', '3-p2']) {
      await raw.register(sleeper(id, { Networks: [{ Mode: 'host', DynamicPorts: ports }] }));
      await raw.running(id);
    }
    const listed = await raw.get<
      { AllocatedResources: { Shared: { Ports: { Value: number; To: number }[] } } }[]
    >('/v1/allocations?resources=true');
    const all = listed.flatMap(({ AllocatedResources }) => AllocatedResources.Shared.Ports);
    expect(new Set(all.map(({ Value }) => Value)).size).to.equal(40);
    expect(all.slice(0, 20).map(({ To }) => To)).to.deep.equal(ports.map(({ To }) => To));
  });

  it('reschedules a failed allocation as its policy says', async () => {
    const policy = {
      Attempts: 1,
      Interval: 3600e9,
      Delay: 10e9,
      DelayFunction: 'constant',
      Unlimited: false,
    };
    await raw.register(sleeper('3-again', { ReschedulePolicy: policy }));
    await raw.running('3-again');
    const [first] = await raw.allocations('3-again');
    await raw.agent.faults.killTask(first?.ID ?? '');
    await raw.settled(
      'the death',
      () => raw.statusesOf('3-again'),
      (all) => all.includes('failed/run'),
    );
    await raw.clock.advance(8_000);
    expect(await raw.allocations('3-again')).to.have.length(1);
    await raw.clock.advance(3_000);
    await raw.running('3-again');
    const second = (await raw.allocations('3-again')).find(({ ID }) => ID !== first?.ID);
    expect(second?.ClientStatus).to.equal('running');
    await raw.agent.faults.killTask(second?.ID ?? '');
    await raw.settled(
      'the second death',
      () => raw.statusesOf('3-again'),
      (all) => all.includes('failed/run'),
    );
    await raw.clock.advance(3_600_000);
    expect(await raw.allocations('3-again')).to.have.length(2);
  });

  it('refuses what it cannot do to an allocation', async () => {
    const none = '11111111-2222-3333-4444-555555555555';
    const restart = (id: string): Promise<{ status: number }> =>
      raw.request('PUT', `/v1/client/allocation/${id}/restart`, {});
    expect((await restart(none)).status).to.equal(404);
    expect((await restart('zz')).status).to.equal(500);
    expect((await raw.request('PUT', `/v1/allocation/${none}/stop`, {})).status).to.equal(404);
    await raw.register(sleeper('3-x'));
    await raw.running('3-x');
    const [one] = await raw.allocations('3-x');
    const wrong = await raw.request('PUT', `/v1/client/allocation/${one?.ID}/restart`, { TaskName: 'nope' });
    expect([wrong.status, wrong.body]).to.deep.equal([500, 'Could not find task runner']);
    await raw.purge('3-x');
    await raw.settled(
      'the end',
      () => raw.statusesOf('3-x'),
      (all) => all.includes('complete/stop'),
    );
    expect((await restart(one?.ID ?? '')).status).to.equal(500);
  });

  it('pages through lists, filtered or not', async () => {
    for (const id of ['3-a', '3-b', '3-c', '4-a', '3-d', '3-e']) await raw.register(sleeper(id));
    const pages: string[][] = [];
    for (let token = ''; pages.length < 5;) {
      const where = `/v1/jobs?per_page=2&filter=ID%20matches%20"^3-"&next_token=${token}`;
      const { body, headers } = await raw.request<JobJson[]>('GET', where);
      pages.push(body.map(({ ID }) => ID));
      token = headers.get('x-nomad-nexttoken') ?? '';
      if (token === '') break;
    }
    expect(pages).to.deep.equal([['3-a', '3-b'], ['3-c', '3-d'], ['3-e']]);
  });

  it('refuses a job with fields of the wrong type, naming the field', async () => {
    const refused = async (job: object): Promise<unknown> =>
      (await raw.request('PUT', '/v1/jobs', { Job: job })).body;
    expect(await refused({ ...sleeper('3-bad'), Priority: 'high' })).to.match(
      /string into Go struct field Job.Priority/,
    );
    expect(await refused({ ...sleeper('3-bad'), TaskGroups: 'x' })).to.match(/Job.TaskGroups of type array/);
    expect(await refused({ ...sleeper('3-bad'), Type: 'system' })).to.match(/Invalid job type: "system"/);
    expect(await refused(sleeper('3-bad', { Count: -1 }))).to.match(/count can't be negative/);
    expect(await refused(sleeper('3-bad', { Tasks: [] }))).to.match(/Missing tasks for task group/);
    expect(await refused({ Type: 'batch' })).to.equal("Job ID hasn't been provided");
  });
});
