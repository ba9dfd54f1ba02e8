import { request as httpRequest } from 'node:http';
import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import type { Answer } from '../support/test-api.js';
import { TestApi } from '../support/test-api.js';
import { eventually, gate } from '../support/waiting.js';

function messageOf(answer: Answer): string {
  return (answer.json as { message: string }).message;
}

describe('the HTTP API of runners', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open();
  });

  afterEach(() => api.server.stop());

  describe('/runners', () => {
    it('claims with an answer of id and ports', async () => {
      api.runners.ports = [
        { label: 'port-80', exposedPort: 80, hostIp: '10.0.0.1', hostPort: 20_000 },
        { label: 'port-81', exposedPort: 81, hostIp: 'fd00::1', hostPort: 20_001 },
      ];
      const body = { executionEnvironmentId: 1, inactivityTimeout: 60 };
      const answer = await api.send('POST', '/runners', body);
      expect(answer.status).to.equal(200);
      expect(answer.json).to.deep.equal({
        runnerId: '1-00000000-0000-4000-8000-000000000001',
        mappedPorts: [
          { exposedPort: 80, hostAddress: '10.0.0.1:20000' },
          { exposedPort: 81, hostAddress: '[fd00::1]:20001' },
        ],
      });
      expect(api.runners.calls).to.deep.equal([['claim', 1, 60]]);
    });

    it('answers 500 NOMAD_OVERLOAD with Retry-After when none is idle', async () => {
      api.runners.claim = () =>
        Promise.reject(new ServiceError('NO_RUNNER_AVAILABLE', 'none idle', { retryAfterSeconds: 4 }));
      const answer = await api.send('POST', '/runners', { executionEnvironmentId: 1 });
      expect(answer.status).to.equal(500);
      expect(answer.json).to.deep.equal({ message: 'none idle', errorCode: 'NOMAD_OVERLOAD' });
      expect(Number(answer.headers.get('retry-after'))).to.be.within(4, 6);
    });

    it('returns with 204 once, then 410; an id of any shape is 410', async () => {
      const { runnerId } = await api.prepare();
      expect((await api.send('DELETE', `/runners/${runnerId}`)).status).to.equal(204);
      for (const id of [runnerId, 'none', '1', '%20', 'a%2Fb', '1-x', 'x'.repeat(3000)]) {
        const answer = await api.send('DELETE', `/runners/${id}`);
        expect(answer.status, id.slice(0, 40)).to.equal(410);
        expect(messageOf(answer)).to.be.a('string');
      }
    });

    it('gives a runner back whose client left before its answer', async () => {
      const claiming = gate();
      api.runners.claimGate = claiming.promise;
      const body = JSON.stringify({ executionEnvironmentId: 1 });
      const req = httpRequest(`${api.base}/runners`, {
        method: 'POST',
        headers: { 'content-length': body.length },
      });
      req.on('error', () => undefined);
      req.end(body);
      await eventually('the claim to begin', () => api.runners.calls.length === 1);
      req.destroy();
      await eventually('the connection to end', () => api.server.connections === 0);
      claiming.open();
      await eventually('the runner to be back', () => api.runners.claimed.size === 0);
    });
  });

  describe('POST /runners/{id}/execute', () => {
    it('prepares an execution and answers the address of its socket, as the client reached us', async () => {
      const { runnerId, url } = await api.prepare();
      expect(url).to.equal(
        `${api.base.replace('http', 'ws')}/runners/${runnerId}/websocket?executionID=execution-1`,
      );
    });

    it('fills in what the body leaves out', async () => {
      await api.prepare();
      expect(api.executions.last.request).to.deep.equal({
        command: 'true',
        privileged: false,
        environment: {},
        timeLimitSeconds: 0,
        outputLimitBytes: undefined,
        interactive: true,
        workingDirectory: undefined,
      });
    });

    it('hands on what the body says, texts unchanged', async () => {
      const { runnerId } = await api.prepare();
      const answer = await api.send('POST', `/runners/${runnerId}/execute`, {
        command: 'echo a\necho "b" \'c\' $D €',
        privilegedExecution: true,
        environment: { A_1: 'x y; $(id)', _: '' },
        timeLimit: 2_147_483,
        outputLimit: 0,
        interactive: false,
        workingDirectory: '/tmp',
      });
      expect(answer.status).to.equal(200);
      expect(api.executions.last.request).to.deep.equal({
        command: 'echo a\necho "b" \'c\' $D €',
        privileged: true,
        environment: { A_1: 'x y; $(id)', _: '' },
        timeLimitSeconds: 2_147_483,
        outputLimitBytes: 0,
        interactive: false,
        workingDirectory: '/tmp',
      });
    });

    it('answers 410 for an unknown runner before it judges the body', async () => {
      const answer = await api.send('POST', '/runners/none/execute', { command: 5 });
      expect(answer.status).to.equal(410);
    });
  });
});
