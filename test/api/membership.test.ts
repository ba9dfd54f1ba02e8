import { expect } from 'chai';
import { FakeCluster } from '../support/fake-cluster.js';
import { TestApi } from '../support/test-api.js';
import { upgradeStatus } from '../support/upgrade-status.js';

describe('the API of a replica', () => {
  let cluster: FakeCluster;
  let api: TestApi;

  beforeEach(async () => {
    cluster = new FakeCluster('own');
    api = await TestApi.open({ cluster, settings: { SERAI_AUTH_TOKEN: 'token' } });
  });

  afterEach(() => api.server.stop());

  it('answers 503 to everything once another process has its name, and says what to do', async () => {
    const claim = { executionEnvironmentId: 1, inactivityTimeout: 0 };
    const { runnerId } = (await api.send('POST', '/runners', claim)).json as { runnerId: string };
    cluster.isFenced = true;
    const requests: [string, string, unknown?][] = [
      ['GET', '/health'],
      ['GET', '/version'],
      ['POST', '/runners', claim],
      ['DELETE', `/runners/${runnerId}`],
      ['GET', '/statistics/execution-environments'],
    ];
    for (const [method, path, body] of requests) {
      const answer = await api.send(method, path, body);
      expect(answer.status, path).to.equal(503);
      expect(JSON.stringify(answer.json), path).to.include('cluster.replica');
    }
    const socket = `${api.base.replace('http', 'ws')}/runners/${runnerId}/websocket?executionID=x`;
    expect(await upgradeStatus(socket, { headers: { 'poseidon-token': 'token' } })).to.equal(503);
    expect(api.runners.claimed.size, 'runners are another’s business').to.equal(1);
  });

  it('tells strangers nothing of that', async () => {
    cluster.isFenced = true;
    expect((await api.send('GET', '/version', undefined, { 'poseidon-token': 'x' })).status).to.equal(401);
  });

  it('says in /health what keeps it from its part, and serves on', async () => {
    cluster.trouble = 'this service cannot see the other services';
    const answer = await api.send('GET', '/health');
    expect(answer.status).to.equal(503);
    expect(answer.json).to.deep.equal({ message: cluster.trouble, errorCode: 'UNKNOWN' });
    expect((await api.send('GET', '/version')).status).to.equal(200);
  });
});
