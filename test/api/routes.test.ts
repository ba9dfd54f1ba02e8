import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { environmentId } from '../../lib/base/ids.js';
import { FakeClock } from '../support/fake-clock.js';
import type { Answer } from '../support/test-api.js';
import { TestApi } from '../support/test-api.js';
import { eventually, gate } from '../support/waiting.js';

const ENVIRONMENT = {
  image: 'python:3.12',
  prewarmingPoolSize: 3,
  cpuLimit: 20,
  memoryLimit: 256,
  networkAccess: true,
  exposedPorts: [8080],
};

function messageOf(answer: Answer): string {
  return (answer.json as { message: string }).message;
}

describe('the HTTP API', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open();
  });

  afterEach(() => api.server.stop());

  describe('GET /health', () => {
    it('answers 204 without a body while every pool is full', async () => {
      const answer = await api.send('GET', '/health');
      expect(answer.status).to.equal(204);
      expect(answer.headers.get('content-length')).to.equal('0');
    });

    it('answers 503 and names the environments whose idle share is too low [A4-96]', async () => {
      const statistics = api.runners.statistics()[0]!;
      api.runners.statistics = () => [
        { ...statistics, prewarmingPoolSize: 4, idleRunners: 1 },
        { ...statistics, id: 7, prewarmingPoolSize: 4, idleRunners: 2 },
        { ...statistics, id: 8, prewarmingPoolSize: 0, idleRunners: 0 },
      ];
      const answer = await api.send('GET', '/health');
      expect(answer.status).to.equal(503);
      expect(answer.json).to.deep.equal({
        message: 'too few idle runners in these environments: 1 (1 of 4)',
        errorCode: 'PREWARMING_POOL_DEPLETING',
      });
    });

    it('answers 503 while Nomad cannot be reached', async () => {
      api.runners.nomadReachable = false;
      const answer = await api.send('GET', '/health');
      expect(answer.status).to.equal(503);
      expect(answer.json).to.have.property('errorCode', 'NOMAD_UNREACHABLE');
    });
  });

  it('GET /version answers the version as a JSON string', async () => {
    const answer = await api.send('GET', '/version');
    expect([answer.status, answer.text]).to.deep.equal([200, '"1.2.3"']);
  });

  it('GET /statistics/execution-environments answers an object keyed by id', async () => {
    const answer = await api.send('GET', '/statistics/execution-environments');
    expect(answer.status).to.equal(200);
    expect(answer.json).to.deep.equal({
      1: {
        id: 1,
        prewarmingPoolSize: 2,
        idleRunners: 2,
        usedRunners: 0,
        pendingRunners: 0,
        failedRunners: 0,
        state: 'ready',
      },
    });
  });

  describe('/execution-environments', () => {
    it('creates with 201, replaces with 204, both with a length of 0', async () => {
      const created = await api.send('PUT', '/execution-environments/5', ENVIRONMENT);
      const replaced = await api.send('PUT', '/execution-environments/5', ENVIRONMENT);
      expect([created.status, replaced.status]).to.deep.equal([201, 204]);
      expect([created, replaced].map(({ headers }) => headers.get('content-length'))).to.deep.equal([
        '0',
        '0',
      ]);
      expect([created.text, replaced.text]).to.deep.equal(['', '']);
    });

    it('answers the environment as it was given', async () => {
      const extras = { name: 'Python', user: 'runner', environment: { A: 'x y' } };
      await api.send('PUT', '/execution-environments/5', { ...ENVIRONMENT, ...extras });
      const answer = await api.send('GET', '/execution-environments/5');
      expect(answer.json).to.deep.equal({ id: 5, ...ENVIRONMENT, ...extras });
      const list = await api.send('GET', '/execution-environments');
      const { executionEnvironments } = list.json as { executionEnvironments: unknown[] };
      expect(executionEnvironments).to.deep.include({ id: 5, ...ENVIRONMENT, ...extras });
    });

    it('takes null for ports and variables as none, and an id that repeats the path', async () => {
      const body = { ...ENVIRONMENT, id: 6, exposedPorts: null, environment: null };
      expect((await api.send('PUT', '/execution-environments/6', body)).status).to.equal(201);
      expect(api.runners.known.get(environmentId(6))?.exposedPorts).to.deep.equal([]);
      const other = await api.send('PUT', '/execution-environments/7', body);
      expect(other.status).to.equal(400);
      expect(messageOf(other)).to.equal('id must be 7, as in the path, not 6');
    });

    it('reads Nomad again only when asked to', async () => {
      await api.send('GET', '/execution-environments?fetch=false');
      await api.send('GET', '/execution-environments/1');
      expect(api.runners.calls).to.deep.equal([]);
      await api.send('GET', '/execution-environments?fetch=true');
      await api.send('GET', '/execution-environments/1?fetch=true');
      expect(api.runners.calls).to.deep.equal([['refresh'], ['refresh']]);
    });

    it('deletes with 204, and answers 404 for an unknown one', async () => {
      expect((await api.send('DELETE', '/execution-environments/1')).status).to.equal(204);
      for (const method of ['GET', 'DELETE']) {
        const answer = await api.send(method, '/execution-environments/1');
        expect(answer.status).to.equal(404);
        expect(messageOf(answer)).to.contain('1');
      }
    });
  });

  describe('what is unknown', () => {
    it('answers 404 in JSON for a route that does not exist', async () => {
      for (const path of ['/nothing', '/Health', '/runners/x/y/z', '/files']) {
        const answer = await api.send('GET', path);
        expect(answer.status, path).to.equal(404);
        expect(messageOf(answer)).to.contain('/api/v1');
      }
    });

    it('answers 405 with the methods that are possible', async () => {
      const answer = await api.send('PATCH', '/execution-environments/1', {});
      expect(answer.status).to.equal(405);
      expect(answer.headers.get('allow')).to.equal('GET, PUT, DELETE, HEAD');
      expect((await api.send('POST', '/health', {})).status).to.equal(405);
    });

    it('answers HEAD like GET, without a body', async () => {
      const answer = await api.send('HEAD', '/execution-environments/1');
      expect([answer.status, answer.text]).to.deep.equal([200, '']);
    });
  });

  describe('failures', () => {
    it('answers 503 with Retry-After until the first listing is done [A1-15]', async () => {
      api.runners.ready = false;
      const answer = await api.send('GET', '/execution-environments/1');
      expect(answer.status).to.equal(503);
      expect(answer.json).to.have.property('errorCode', 'NOMAD_UNREACHABLE');
      expect(answer.headers.get('retry-after')).to.match(/^[12]$/);
    });

    it('answers UNKNOWN with an id under which the log has the rest, and nothing else', async () => {
      api.runners.failure = new TypeError('secret path /etc/x');
      const answer = await api.send('GET', '/execution-environments/1');
      expect(answer.status).to.equal(500);
      expect(answer.json).to.have.property('errorCode', 'UNKNOWN');
      expect(answer.text).not.to.match(/secret|\.ts|at /);
      const id = /requestId (\S+)$/.exec(messageOf(answer))?.[1];
      const line = api.log.lines.find(({ level }) => level === 'error');
      expect(line?.fields).to.include({ requestId: id, error: api.runners.failure });
    });

    it('answers the 500s that older clients know when told to', async () => {
      await using peer = await TestApi.open({ settings: { SERAI_API_PEER_STATUSES: 'true' } });
      const answers = new Map<string, unknown>();
      for (const code of [
        'EXECUTION_TAKEN',
        'TOO_MANY_EXECUTIONS',
        'NOMAD_UNREACHABLE',
        'STOPPED',
      ] as const) {
        peer.runners.failure = new ServiceError(code, code);
        const { status, json } = await peer.send('GET', '/execution-environments');
        answers.set(code, [status, (json as { errorCode?: string }).errorCode]);
      }
      expect(Object.fromEntries(answers)).to.deep.equal({
        EXECUTION_TAKEN: [500, 'NOMAD_OVERLOAD'],
        TOO_MANY_EXECUTIONS: [500, 'NOMAD_OVERLOAD'],
        NOMAD_UNREACHABLE: [500, 'NOMAD_UNREACHABLE'],
        STOPPED: [500, 'NOMAD_UNREACHABLE'],
      });
      peer.runners.nomadReachable = false;
      expect((await peer.send('GET', '/health')).status).to.equal(503);
    });
  });

  it('writes one line for each request, with the pattern of its route and no id or query', async () => {
    await api.send('DELETE', '/runners/some-id');
    await api.send('GET', '/execution-environments?fetch=true');
    const lines = api.log.lines.filter(({ level, message }) => level === 'info' && message === 'request');
    const seen = lines.map(({ fields: { method, route, status, code } }) => ({
      method,
      route,
      status,
      code,
    }));
    expect(seen).to.deep.equal([
      { method: 'DELETE', route: '/api/v1/runners/:id', status: 410, code: 'RUNNER_GONE' },
      { method: 'GET', route: '/api/v1/execution-environments', status: 200, code: undefined },
    ]);
    expect(JSON.stringify(lines)).not.to.match(/some-id|fetch/);
  });

  it('measures requests with the injected clock', async () => {
    const clock = new FakeClock();
    await using timed = await TestApi.open({ clock });
    const claiming = gate();
    timed.runners.claimGate = claiming.promise;
    const answer = timed.send('POST', '/runners', { executionEnvironmentId: 1 });
    await eventually('the claim to begin', () => timed.runners.calls.length === 1);
    await clock.advance(250);
    claiming.open();
    await answer;
    await eventually('the line', () => timed.log.lines.some(({ fields }) => fields['ms'] === 250));
  });
});
