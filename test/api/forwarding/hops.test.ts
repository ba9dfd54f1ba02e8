import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { HopSeal } from '../../../lib/api/forwarding/hop.js';
import { replicaId } from '../../../lib/base/ids.js';
import { ApiPair, SECRET } from '../../support/api-pair.js';
import { TestApi } from '../../support/test-api.js';
import { upgradeStatus } from '../../support/upgrade-status.js';

const HOP = {
  from: replicaId('near'),
  requestId: 'r',
  tokenName: 'admin',
  socketBase: 'ws://elsewhere.example',
};
const settings = { SERAI_AUTH_TOKEN: 'the-token-of-the-client' };

function markFor(method: string, url: string, secret = SECRET): Record<string, string> {
  return { 'serai-hop': new HopSeal(secret).mark(HOP, { method, url }) };
}

describe('the mark of a hop', () => {
  it('stands for a token where it was made with the secret, for this request', async () => {
    await using pair = await ApiPair.open({ settings });
    const runnerId = await pair.claim();
    const path = `/runners/${runnerId}/execute`;
    const url = `/api/v1${path}`;
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await pair.far.send('POST', path, { command: 'true' }, { 'poseidon-token': '', ...headers })).status;
    expect(await ask({})).to.equal(401);
    expect(await ask(markFor('POST', url))).to.equal(200);
    const forged = {
      'another secret': markFor('POST', url, 'some other secret of others'),
      'another method': markFor('DELETE', url),
      'another target': markFor('POST', `${url}?a`),
      'no seal': { 'serai-hop': Buffer.from(JSON.stringify(HOP)).toString('base64url') },
      'nothing at all': { 'serai-hop': '' },
      'the secret itself': { 'serai-hop': SECRET },
    };
    for (const [what, headers] of Object.entries(forged)) expect(await ask(headers), what).to.equal(401);
  });

  it('of a forger is refused although there is a good token beside it', async () => {
    await using pair = await ApiPair.open({ settings });
    const answer = await pair.near.send('GET', '/version', undefined, { 'serai-hop': 'x.y' });
    expect(answer.status).to.equal(401);
  });

  it('that was made with the secret and tells nothing is refused', async () => {
    await using pair = await ApiPair.open({ settings });
    const url = '/api/v1/version';
    const told = Buffer.from('nothing').toString('base64url');
    const seal = createHmac('sha256', SECRET).update(`GET\n${url}\n${told}`).digest('base64url');
    const answer = await pair.far.send('GET', '/version', undefined, { 'serai-hop': `${told}.${seal}` });
    expect(answer.status).to.equal(401);
  });

  it('that the owner refuses is nothing of the client, whose answer is 503, and the log tells it once', async () => {
    await using pair = await ApiPair.open(
      {},
      { settings: { SERAI_CLUSTER_SECRET: 'a-secret-of-some-others' } },
    );
    const runnerId = await pair.claim();
    for (const [method, path, body] of [
      ['GET', 'files', undefined],
      ['PATCH', 'files', { delete: ['./*'] }],
    ] as const) {
      const answer = await pair.near.send(method, `/runners/${runnerId}/${path}`, body);
      expect(answer.status, method).to.equal(503);
      expect(answer.headers.has('www-authenticate'), method).to.equal(false);
    }
    const session = `${pair.near.base.replace('http', 'ws')}/runners/${runnerId}/session`;
    expect(await upgradeStatus(session, { protocols: ['serai.v1'] })).to.equal(503);
    const told = pair.near.log.lines.filter(({ message }) => message.includes('cluster.secret'));
    expect(told).to.have.length(1);
    expect(told[0]).to.deep.include({ level: 'error', fields: { replica: pair.farReplica.id } });
  });

  it('comes back as 503 from a process whose name another has, whose address is looked up then', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    pair.farCluster.become({ isFenced: true });
    const answer = await pair.near.send('GET', `/runners/${runnerId}/files`);
    expect(answer.status).to.equal(503);
    expect((answer.json as { message: string }).message).not.to.contain('stop this one');
    const session = `${pair.near.base.replace('http', 'ws')}/runners/${runnerId}/session`;
    expect(await upgradeStatus(session, { protocols: ['serai.v1'] })).to.equal(503);
    expect(pair.nearCluster.displaced).to.deep.equal([pair.farReplica.id, pair.farReplica.id]);
    expect(pair.nearCluster.suspected).to.deep.equal([]);
  });

  it('opens runners and nothing else', async () => {
    await using pair = await ApiPair.open({ settings });
    const url = '/api/v1/execution-environments/1';
    const answer = await pair.far.send('DELETE', '/execution-environments/1', undefined, {
      'poseidon-token': '',
      ...markFor('DELETE', url),
    });
    expect(answer.status).to.equal(403);
  });

  it('means nothing to a service that is alone', async () => {
    await using api = await TestApi.open({ settings });
    const headers = markFor('GET', '/api/v1/version');
    expect(
      (await api.send('GET', '/version', undefined, { 'poseidon-token': '', ...headers })).status,
    ).to.equal(401);
    expect((await api.send('GET', '/version', undefined, headers)).status).to.equal(200);
  });

  it('keeps a request from being passed on again, and its sender looks once more', async () => {
    await using pair = await ApiPair.open();
    const { near, far, farReplica, nearCluster, farCluster } = pair;
    const runnerId = await pair.claim();
    // Each thinks that the other has it.
    const nearReplica = farCluster.add('near', near.server.url);
    far.runners.elsewhere.set(runnerId, nearReplica);
    for (const [method, path, body] of [
      ['GET', `/runners/${runnerId}/files`, undefined],
      ['PATCH', `/runners/${runnerId}/files`, { delete: ['./*'] }],
    ] as const) {
      near.runners.calls.length = 0;
      const answer = await near.send(method, path, body);
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
      expect(answer.headers.get('serai-hop')).to.equal(null);
      expect(near.runners.calls).to.have.length(3);
      expect(far.runners.calls.flat()).not.to.include('locate');
    }
    // The second look finds the truth; the body is whole.
    let looks = 0;
    near.runners.onLocate = () => {
      looks += 1;
      if (looks === 2) far.runners.elsewhere.delete(runnerId);
      return Promise.resolve({ kind: 'elsewhere', owner: farReplica });
    };
    const answer = await near.send('POST', `/runners/${runnerId}/execute`, { command: 'echo whole' });
    expect(answer.status, answer.text).to.equal(200);
    expect(far.executions.last.request.command).to.equal('echo whole');
    expect(nearCluster.suspected).to.deep.equal([]);
  });
});
