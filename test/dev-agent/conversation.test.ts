import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import { normal } from './support/normal.js';
import { fixture, RawAgent } from './support/raw-agent.js';
import type { AllocationJson, EvaluationJson } from './support/agent-json.js';

interface Recorded {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly body?: unknown;
  };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

const INDEX_HEADERS = ['x-nomad-index', 'x-nomad-knownleader', 'x-nomad-lastcontact'];

/**
 * The conversation that was recorded with a real server, held with the agent: the same requests, with the agent's own
 * ids and indexes in the place of the recorded ones; the same answers.
 */
describe('conversation with the embedded agent', () => {
  let raw: RawAgent;
  /** Recorded ids and indexes → the agent's. */
  const meaning = new Map<string, string>();
  let evaluations: string[] = [];

  beforeEach(async () => {
    raw = await RawAgent.start({ acceptAnyDriver: false, capacity: { cpuMhz: 4000, memoryMb: 4000 } });
    meaning.clear();
    evaluations = [];
  });
  afterEach(() => raw.stop());

  function translate(text: string): string {
    return [...meaning].reduce((result, [from, to]) => result.replaceAll(from, to), text);
  }

  /** Sends the recorded request and compares the answer with the recorded one, or with `expected` of it. */
  async function say(name: string, expected = (body: unknown): unknown => body): Promise<unknown> {
    const { request, response } = fixture<Recorded>(`http/${name}`);
    const body = request.body === undefined ? undefined : translate(JSON.stringify(request.body));
    const sent = typeof request.body === 'string' ? request.body : body;
    const answer = await raw.request(request.method, translate(request.path), sent);
    expect(answer.status, name).to.equal(response.status);
    expect(normal(answer.body), name).to.deep.equal(normal(expected(response.body)));
    for (const header of INDEX_HEADERS) {
      expect(answer.headers.has(header), `${header} of ${name}`).to.equal(header in response.headers);
    }
    return answer.body;
  }

  /** Says it, and remembers which id of the agent stands for the recorded evaluation. */
  async function register(name: string): Promise<void> {
    const { response } = fixture<{ response: { body: { EvalID: string; JobModifyIndex: number } } }>(
      `http/${name}`,
    );
    const answer = (await say(name)) as { EvalID: string; JobModifyIndex: number };
    meaning.set(response.body.EvalID, answer.EvalID);
    evaluations.push(answer.EvalID);
    meaning.set(
      `"JobModifyIndex":${response.body.JobModifyIndex}`,
      `"JobModifyIndex":${answer.JobModifyIndex}`,
    );
  }

  async function evaluated(): Promise<void> {
    await eventually('the evaluations', async () => {
      const all = await Promise.all(evaluations.map((id) => raw.get<EvaluationJson>(`/v1/evaluation/${id}`)));
      return all.every(({ Status }) => Status === 'complete');
    });
  }

  /** Waits for the allocation of a job and remembers that it stands for a recorded one. */
  async function meet(jobId: string, recordedId: string, status = 'running'): Promise<AllocationJson> {
    const allocation = await raw.allocation(jobId, status);
    meaning.set(recordedId, allocation.ID);
    return allocation;
  }

  it('knows nothing at first', async () => {
    await say('job-not-found');
    await say('jobs-empty-prefix');
    await say('evaluation-not-found');
    await say('allocation-not-found');
    await say('allocation-bad-id');
    await say('deregister-absent');
    await say('agent-self-404-path');
    await say('agent-health');
    await say('status-leader');
    await say('regions');
    await say('namespaces', (body) => (body as object[]).map((one) => ({ ...one, Hash: '' })));
    await say('nodes', (body) => {
      // The node has no reserved resources to tell of.
      const text = JSON.stringify(body).replace(/"ReservedResources":\{.*?\}\},/, '');
      return (JSON.parse(text) as object[]).map((row) => ({ ...row, Name: raw.agent.nodeName }));
    });
  });

  it('tells of itself what a real agent tells', async () => {
    const { response } = fixture<Recorded>('http/agent-self-excerpt');
    const self = await raw.get<Record<string, Record<string, unknown>>>('/v1/agent/self');
    const recorded = response.body as typeof self;
    expect(self['config']).to.deep.equal(recorded['config']);
    expect(self['member']).to.deep.equal({ Name: `${raw.agent.nodeName}.global`, Status: 'alive' });
    expect(self['stats']?.['nomad']).to.deep.equal(recorded['stats']?.['nomad']);
    expect(self['embedded']).to.deep.equal({ driver: 'process', isolates: false, openExecs: 0 });
  });

  it('refuses what cannot be registered', async () => {
    await say('register-bad-json');
    await say('register-no-job');
    await say('register-invalid-job');
    await say('register-unknown-namespace');
  });

  it('runs a job, replaces it by a change of job-level meta, and lets it go', async () => {
    await register('register');
    await evaluated();
    await meet('7-life', '84be5737-2937-8163-9c16-ebdbd1048f74');
    await say('evaluation-complete');
    await say('evaluation-allocations');
    await say('job-allocations');
    await say('allocation');
    await say('job');
    await say('job-summary');
    await say('jobs-prefix');
    await say('jobs-prefix-meta');
    await say('jobs-filter');
    await say('jobs-filter-bad');
    await say('jobs-filter-unknown-field');
    await say('register-enforce-index-conflict');
    await register('register-enforce-index-ok');
    await evaluated();
    await eventually('the end of the first allocation', async () => {
      const statuses = (await raw.allocations('7-life')).map(({ ClientStatus }) => ClientStatus);
      return statuses.includes('complete') && statuses.includes('running');
    });
    await say('job-allocations-after-job-meta-update', (body) =>
      // The recorded sleep was interrupted; the agent kills at once.
      JSON.parse(
        JSON.stringify(body)
          .replaceAll('"ExitCode":130', '"ExitCode":137')
          .replaceAll('"Signal":2', '"Signal":9')
          .replaceAll('"exit_code":"130"', '"exit_code":"137"')
          .replaceAll('"signal":"2"', '"signal":"9"')
          .replaceAll('Exit Code: 130, Signal: 2', 'Exit Code: 137, Signal: 9'),
      ),
    );
    await say('deregister-purge');
  });

  it('updates a job in place when only the group of count 0 changes', async () => {
    await register('register-with-config-group');
    const before = await meet('7-cfg', '14c2c654-83c6-7954-2a6f-0407b0cffbbd');
    await register('register-config-group-update');
    await evaluated();
    const after = await raw.allocation('7-cfg');
    expect(after.ID).to.equal(before.ID);
    expect(after.ModifyIndex).to.be.above(before.ModifyIndex);
    expect(after.TaskStates).to.deep.equal(before.TaskStates);
    await register('stop-without-purge');
    await evaluated();
    await eventually('the job to be dead', async () => {
      return (await raw.get<{ Status: string }>('/v1/job/7-cfg')).Status === 'dead';
    });
    await say('job-stopped');
  });

  it('says why a job cannot be placed', async () => {
    await register('register-unplaceable');
    await evaluated();
    await say('evaluation-blocked');
    await register('register-no-driver');
    await evaluated();
    await say('evaluation-no-driver');
  });

  it('gives host ports, restarts on request and stops with a replacement', async () => {
    await register('register-docker-with-port');
    await meet('7-port', '83a222bd-409e-1225-100b-8b947203dfba');
    await say('allocation-docker-with-port');
    await say('restart-allocation');
    await eventually('the restart', async () => {
      const { TaskStates } = await raw.allocation('7-port');
      const task = TaskStates?.['default-task'];
      return task?.State === 'running' && task.Restarts === 1;
    });
    await say('stop-allocation');
  });

  it('keeps variables with check-and-set', async () => {
    await say('variable-put-cas0');
    await say('variable-get');
    await say('variable-put-cas-conflict');
    const { ModifyIndex } = await raw.get<{ ModifyIndex: number }>('/v1/var/app/control');
    meaning.set('cas=100', `cas=${ModifyIndex}`);
    await say('variable-put-cas-ok');
    await say('variable-not-found');
    await say('variable-delete');
  });

  it('reports tasks that fail', async () => {
    await register('register-task-exits-1');
    await meet('7-exit1', 'e2f98b92-964c-e544-08d2-6a9efff3e674', 'failed');
    await say('allocation-failed-exits-1');
    await register('register-bad-command');
    await meet('7-nocmd', '99d297a0-97f8-5bd8-2d46-a75661393951', 'failed');
    await say('allocation-failed-bad-command');
  });

  it('says that it parses no HCL', async () => {
    const { request } = fixture<Recorded>('http/jobs-parse');
    const answer = await raw.request('POST', '/v1/jobs/parse', request.body);
    expect(answer.status).to.equal(400);
    expect(answer.body).to.match(/HCL is not supported by the embedded agent/);
  });
});
