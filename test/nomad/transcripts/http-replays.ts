import { expect } from 'chai';
import { allocationId } from '../../../lib/base/ids.js';
import {
  coreFails,
  evaluates,
  expectCode,
  FAILED,
  isAbsent,
  listFails,
  lists,
  looksUp,
  passesThrough,
  registerFails,
  registers,
  RUNNING,
  STARTED,
} from './replays.js';
import type { Replay } from './replays.js';

const RUNNER = (id: string) => `0-${id}-ece2-11f1-907d-86e12f3ec178`;
const used = (value: string) =>
  `any TaskGroups as tg { tg.Name == "config" and tg.Meta["used"] == "${value}" }`;

export const HTTP_REPLAYS: Readonly<Record<string, Replay>> = {
  'http/acl/jobs-with-unknown-token.json': listFails('NOMAD_REFUSED', 'Permission denied'),
  'http/acl/jobs-without-token.json': listFails('NOMAD_REFUSED', 'Permission denied'),
  'http/acl/namespace-create.json': coreFails('NOMAD_REFUSED', 'Permission denied'),
  'http/acl/register-in-forbidden-namespace.json': registerFails('NOMAD_REFUSED', 'Permission denied'),
  'http/acl/register-without-token.json': registerFails('NOMAD_REFUSED', 'Permission denied'),
  'http/agent-health.json': passesThrough,
  'http/agent-self-404-path.json': coreFails('NOMAD_NOT_FOUND', 'status 404'),
  'http/agent-self-excerpt.json': passesThrough,
  'http/allocation-after-agent-restart.json': looksUp({ ...RUNNING, modifyIndex: 887 }),
  'http/allocation-after-oom-inside-exec.json': looksUp({ ...RUNNING, modifyIndex: 1048 }),
  'http/allocation-bad-id.json': ({ client }) =>
    expectCode(client.allocations.get(allocationId('zz')), 'NOMAD_REJECTED', 'UUID must be 36 characters'),
  'http/allocation-docker-with-port.json': looksUp({
    ...RUNNING,
    ports: [{ label: 'port-8080', exposedPort: 8080, hostIp: '127.0.0.1', hostPort: 30726 }],
  }),
  'http/allocation-failed-bad-command.json': looksUp({
    ...FAILED,
    events: ['Received', 'Task Setup', 'Driver Failure', 'Not Restarting'],
  }),
  'http/allocation-failed-bad-image.json': looksUp({
    ...FAILED,
    events: ['Received', 'Task Setup', 'Driver', 'Driver Failure', 'Not Restarting'],
  }),
  'http/allocation-failed-exits-1.json': looksUp({
    ...FAILED,
    events: [...STARTED, 'Terminated 1', 'Not Restarting'],
  }),
  'http/allocation-failed-oom.json': looksUp({
    ...FAILED,
    events: [...STARTED, 'Terminated 137 oom', 'Not Restarting'],
  }),
  'http/allocation-failed-restarts.json': looksUp({
    ...FAILED,
    task: { state: 'dead', restarts: 2, lastRestart: '2026-11-30T16:59:50.417209916Z' },
  }),
  'http/allocation-not-found.json': isAbsent((client, id) => client.allocations.get(allocationId(id))),
  'http/allocation-restarted.json': looksUp({
    ...RUNNING,
    task: { state: 'running', restarts: 1, lastRestart: '2026-11-30T17:12:08.228334832Z' },
    events: [...STARTED, 'Terminated 137', 'Restarting', 'Started'],
  }),
  'http/allocation-stats.json': passesThrough,
  'http/allocation.json': looksUp({ ...RUNNING, createIndex: 11, modifyIndex: 13, jobId: '7-life' }),
  'http/allocations-page.json': async ({ http }) => {
    const query = { per_page: '2', task_states: 'false' };
    const page = await http.request({ method: 'GET', path: '/v1/allocations', query });
    expect(page.nextToken).to.equal('24.14c2c654-83c6-7954-2a6f-0407b0cffbbd');
    expect(page.body).to.have.length(2);
  },
  'http/allocations-running.json': async ({ client }) => {
    const filter = 'ClientStatus == "running" and JobID matches "^0-"';
    const allocations = await client.allocations.list({ filter, details: true });
    expect(allocations.map(({ modifyIndex }) => modifyIndex)).to.deep.equal([1318, 1318, 1324, 1319, 1328]);
    for (const { clientStatus, tasks, ports } of allocations) {
      expect(clientStatus).to.equal('running');
      expect(tasks?.['default-task']).to.include({ state: 'running', restarts: 0 });
      expect(ports, 'a row without resources').to.equal(undefined);
    }
  },
  'http/deregister-absent.json': async ({ client }) => {
    expect(await client.jobs.purge('absent')).to.deep.equal({ evaluationId: undefined });
  },
  'http/deregister-purge.json': async ({ client }) => {
    const evaluationId = 'ee6b6983-ec87-20eb-f173-06d736a7ffc8';
    expect(await client.jobs.purge('7-life')).to.deep.equal({ evaluationId });
  },
  'http/evaluation-allocations.json': passesThrough,
  'http/evaluation-blocked.json': evaluates({
    jobId: '7-big',
    status: 'complete',
    triggeredBy: 'job-register',
    blockedEvaluation: '18a24512-51d0-c2d6-1c82-f14426997c05',
    failedGroups: {
      'default-group': {
        nodesEvaluated: 1,
        nodesExhausted: 1,
        nodesFiltered: 0,
        exhaustedDimensions: { cpu: 1 },
        filteredConstraints: {},
      },
    },
  }),
  'http/evaluation-complete.json': evaluates({ status: 'complete', modifyIndex: 12, failedGroups: {} }),
  'http/evaluation-no-driver.json': evaluates({
    status: 'complete',
    blockedEvaluation: '560e67cf-3dda-7a19-94bf-d98a14426647',
    failedGroups: {
      'default-group': {
        nodesEvaluated: 1,
        nodesExhausted: 0,
        nodesFiltered: 1,
        exhaustedDimensions: {},
        filteredConstraints: { 'missing drivers': 1 },
      },
    },
  }),
  'http/evaluation-not-found.json': isAbsent((client, id) => client.evaluations.get(id)),
  'http/job-allocations-after-job-meta-update.json': async ({ client }) => {
    const [old, fresh] = await client.jobs.allocations('7-life');
    expect(old).to.include({ clientStatus: 'complete', desiredStatus: 'stop', nextAllocation: fresh?.id });
    expect(old?.description).to.equal('All tasks have completed; alloc is being updated due to job update');
    expect(old?.tasks?.['default-task']?.events.at(-2)).to.include({ type: 'Terminated', exitCode: 130 });
    expect(fresh).to.include({ clientStatus: 'running', desiredStatus: 'run' });
  },
  'http/job-allocations.json': async ({ client }) => {
    const [allocation, ...others] = await client.jobs.allocations('7-life');
    expect(others).to.deep.equal([]);
    expect(allocation).to.include({ clientStatus: 'running', modifyIndex: 13, ports: undefined });
  },
  'http/job-not-found.json': isAbsent((client, id) => client.jobs.get(id)),
  'http/job-stopped.json': async ({ client, transcript }) => {
    const job = await client.jobs.get('7-cfg');
    expect(job).to.deep.equal(transcript.response.body);
    expect(job).to.include({ Stop: true, Status: 'dead' });
  },
  'http/job-summary.json': passesThrough,
  'http/job.json': async ({ client, transcript }) => {
    const job = await client.jobs.get('7-life');
    expect(job, 'the job as Nomad has it').to.deep.equal(transcript.response.body);
    expect(job).to.include({ ID: '7-life', JobModifyIndex: 10 });
  },
  'http/jobs-empty-prefix.json': lists({ prefix: 'zzz' }, []),
  'http/jobs-filter-bad.json': listFails('NOMAD_REJECTED', 'failed to read filter expression', 'Nope =='),
  'http/jobs-filter-unknown-field.json': listFails('NOMAD_REJECTED', 'name "Nope"', 'Nope == "x"'),
  'http/jobs-filter-unused.json': async ({ client }) => {
    const rows = await client.jobs.list({ prefix: '0-', filter: used('false') });
    expect(rows.slice(0, 3).map(({ id }) => id)).to.deep.equal(
      ['e78bd70a', 'e78d7bf2', 'e79ab6f1'].map(RUNNER),
    );
  },
  'http/jobs-filter-used.json': lists({ prefix: '0-', filter: used('true') }, [RUNNER('e792809e')]),
  'http/jobs-filter.json': lists({ filter: 'Status == "running" and ID matches "^7-"' }, ['7-life']),
  'http/jobs-page-1.json': async ({ http }) => {
    const query = { prefix: '0-', per_page: '2' };
    const page = await http.request({ method: 'GET', path: '/v1/jobs', query });
    expect(page.nextToken).to.equal(`default.${RUNNER('e792809e')}`);
  },
  'http/jobs-page-2.json': async ({ http }) => {
    const query = { prefix: '0-', per_page: '2', next_token: `default.${RUNNER('e792809e')}` };
    const page = await http.request({ method: 'GET', path: '/v1/jobs', query });
    expect(page.nextToken).to.equal(`default.${RUNNER('ea02eae2')}`);
  },
  'http/jobs-parse-error.json': ({ client }) =>
    expectCode(client.jobs.parse('job "x" {'), 'NOMAD_REJECTED', 'Argument or block definition required'),
  'http/jobs-parse.json': async ({ client, transcript }) => {
    const job = await client.jobs.parse((transcript.request.body as { JobHCL: string }).JobHCL);
    expect(job).to.include({ ID: 'template-7', Type: 'batch' });
    expect(job, 'null where a job has a text').to.not.have.any.keys('Status', 'ModifyIndex', 'Region');
    expect(job.TaskGroups?.[0]?.Tasks?.[0]).to.deep.include({
      Driver: 'docker',
      Config: { image: 'python:3.12', command: 'sleep', args: ['infinity'] },
    });
    expect(job.TaskGroups?.[0]?.Tasks?.[0]?.Resources).to.include({ CPU: 40, MemoryMB: 50 });
  },
  'http/jobs-prefix-meta.json': async ({ client }) => {
    const [row] = await client.jobs.list({ prefix: '7-', meta: true });
    expect(row).to.deep.equal({
      id: '7-life',
      status: 'running',
      stop: false,
      createIndex: 10,
      modifyIndex: 11,
      jobModifyIndex: 10,
      meta: { used: 'false' },
    });
  },
  'http/jobs-prefix.json': async ({ client }) => {
    const [row] = await client.jobs.list({ prefix: '7-' });
    expect(row).to.include({ id: '7-life', meta: undefined });
  },
  'http/namespaces.json': passesThrough,
  'http/node-drain.json': passesThrough,
  'http/node-eligible.json': passesThrough,
  'http/nodes.json': async ({ client }) => {
    expect(await client.nodes.list()).to.deep.equal([
      {
        id: '98c7823a-79b1-ca3a-2457-fb9642e3a585',
        name: 'vm',
        address: '127.0.0.1',
        status: 'ready',
        eligible: true,
        draining: false,
        modifyIndex: 30,
      },
    ]);
  },
  'http/raw-allocation-after-agent-restart.json': looksUp({ ...RUNNING, modifyIndex: 887 }),
  'http/regions.json': passesThrough,
  'http/register-bad-command.json': registers('db607bff-92c2-2204-027b-858a49df872b', 47),
  'http/register-bad-image.json': registers('d1db6fcd-62c4-4e61-3c83-6bb6c98bdf74', 50),
  'http/register-bad-json.json': registerFails('NOMAD_REJECTED', 'unexpected EOF'),
  'http/register-config-group-update.json': registers('063b97f1-2473-3cfa-4c12-965b01006c24', 27),
  'http/register-docker-with-port.json': registers('540980bb-7999-127e-9edb-0aeec5842ae1', 84),
  'http/register-enforce-index-conflict.json': registerFails('NOMAD_CONFLICT', 'job modify index: 10', 1),
  'http/register-enforce-index-ok.json': registers('65e0aa70-b190-bc3c-b768-4ede6d6c1f3e', 14, 10),
  'http/register-evaluation-first-look.json': evaluates({ status: 'pending', modifyIndex: 11 }),
  'http/register-invalid-job.json': registerFails('NOMAD_REJECTED', 'Missing job task groups'),
  'http/register-no-driver.json': registers('2cfbd8b4-3464-9c51-8e49-116d20d3ecb9', 45),
  'http/register-no-job.json': registerFails('NOMAD_REJECTED', 'Job must be specified'),
  'http/register-oom-docker.json': registers('a681352e-7267-26d3-e467-8180c4bf4cb5', 56),
  'http/register-restarts.json': registers('75a4c5e7-98f5-4b50-5c4a-866cce829ca0', 54),
  'http/register-task-exits-1.json': registers('4d4c7543-b1dc-f153-1afa-25c5cf6de6ff', 39),
  'http/register-unknown-namespace.json': registerFails('NOMAD_REJECTED', 'nonexistent namespace "nope"'),
  'http/register-unplaceable.json': registers('1eb479b6-0a32-b840-ec6a-fbe6d380cc96', 42),
  'http/register-while-drained.json': registers('dae33266-e201-041f-aba8-0504f7f90e3f', 1065),
  'http/register-with-config-group.json': registers('57291e65-a305-36c6-7087-43722afbddc9', 23),
  'http/register.json': registers('a3b9f4ff-c48e-1879-a677-52e89a23cf47', 10),
  'http/restart-allocation.json': passesThrough,
  'http/status-leader.json': async ({ client }) => {
    expect(await client.leader()).to.equal('127.0.0.1:4647');
  },
  'http/stop-allocation.json': passesThrough,
  'http/stop-without-purge.json': passesThrough,
  'http/variable-delete.json': async ({ client }) => {
    expect(await client.variables.remove('app/control')).to.equal(undefined);
  },
  'http/variable-get.json': async ({ client }) => {
    const expected = { path: 'app/control', modifyIndex: 100, items: { state: '{}' } };
    expect(await client.variables.get('app/control')).to.deep.equal(expected);
  },
  'http/variable-not-found.json': isAbsent((client) => client.variables.get('app/absent')),
  'http/variable-put-cas-conflict.json': ({ client }) =>
    expectCode(client.variables.put('app/control', { state: 'x' }, { cas: 1 }), 'NOMAD_CONFLICT', '409'),
  'http/variable-put-cas-ok.json': async ({ client }) => {
    const expected = { path: 'app/control', modifyIndex: 102, items: { state: 'y' } };
    expect(await client.variables.put('app/control', { state: 'y' }, { cas: 100 })).to.deep.equal(expected);
  },
  'http/variable-put-cas0.json': async ({ client }) => {
    const put = await client.variables.put('app/control', { state: '{}' }, { cas: 0 });
    expect(put).to.include({ modifyIndex: 100 });
  },
};
