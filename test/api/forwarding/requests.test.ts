import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { expect } from 'chai';
import { OPERATIONS } from '../../../lib/api/operations/all.js';
import { runnerParameterOf } from '../../../lib/api/operations/runners.js';
import { ApiPair } from '../../support/api-pair.js';
import { eventually, gate } from '../../support/waiting.js';

const TOKENS = {
  SERAI_AUTH_TOKEN: 'the-token-of-the-client',
};

describe('requests for a runner of another replica', () => {
  it('reach the owner on every route with a runner', async () => {
    await using pair = await ApiPair.open();
    const ofRunners = OPERATIONS.filter((operation) => runnerParameterOf(operation) !== undefined);
    expect(ofRunners.length).to.be.greaterThan(6);
    for (const { method, path } of ofRunners) {
      const runnerId = await pair.claim();
      // Refused for its body or for want of a handshake, but by the owner, to whom the runner is known.
      await pair.near.send(method, path.replace('{id}', runnerId));
      const line = pair.far.log.lines.at(-1);
      expect(line?.fields, `${method} ${path}`).to.include({ method, forwardedFrom: 'near' });
      expect(pair.near.log.lines.at(-1)?.fields).to.include({ method, forwardedTo: 'far' });
      expect(line?.fields['requestId']).to.equal(pair.near.log.lines.at(-1)?.fields['requestId']);
      expect(line?.fields['status']).to.equal(pair.near.log.lines.at(-1)?.fields['status']);
    }
  });

  it('get the answer as the owner gives it', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    const content = Buffer.alloc(3_000_000, 'abc');
    const copied = await pair.near.send('PATCH', `/runners/${runnerId}/files`, {
      copy: [{ path: './a', content: content.toString('base64') }],
    });
    expect(copied.status, copied.text).to.equal(204);
    expect(pair.far.files.contents.get('./a')?.equals(content)).to.equal(true);
    const read = await pair.near.send('GET', `/runners/${runnerId}/files/raw?path=./a`);
    expect(read.headers.get('content-length')).to.equal(String(content.length));
    expect(read.text === content.toString()).to.equal(true);
    const listed = await pair.near.send('GET', `/runners/${runnerId}/files`);
    expect(listed.json).to.have.property('files').with.length(1);
    const head = await pair.near.send('HEAD', `/runners/${runnerId}/files/raw?path=./a`);
    expect([head.status, head.headers.get('content-length'), head.text]).to.deep.equal([
      200,
      String(content.length),
      '',
    ]);
    expect((await pair.near.send('GET', `/runners/${runnerId}/files/raw?path=./b`)).status).to.equal(424);
    expect((await pair.near.send('DELETE', `/runners/${runnerId}`)).status).to.equal(204);
    expect((await pair.near.send('DELETE', `/runners/${runnerId}`)).status).to.equal(410);
  });

  it('take a body of unknown length, and one that the client announces with Expect', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    for (const headers of [{}, { expect: '100-continue' }]) {
      const sent = request(`${pair.near.base}/runners/${runnerId}/execute`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked', ...headers },
        agent: false,
      });
      sent.flushHeaders();
      if ('expect' in headers) await once(sent, 'continue');
      sent.write('{"command":');
      sent.end('"true"}');
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      expect(response.statusCode).to.equal(200);
    }
    expect(pair.far.executions.last.request.command).to.equal('true');
  });

  it('are judged and counted where they arrive, and nowhere else', async () => {
    const settings = {
      ...TOKENS,
      SERAI_AUTH_RATE_LIMIT_REQUESTS_PER_SECOND: '0.001',
      SERAI_AUTH_RATE_LIMIT_BURST: '2',
    };
    await using pair = await ApiPair.open({ settings }, { settings: TOKENS });
    const runnerId = await pair.claim();
    const wrong = await pair.near.send('DELETE', `/runners/${runnerId}`, undefined, {
      'poseidon-token': 'no',
    });
    expect(wrong.status).to.equal(401);
    const first = await pair.near.send('POST', `/runners/${runnerId}/execute`, { command: 'true' });
    expect(first.status, first.text).to.equal(200);
    expect((await pair.near.send('GET', `/runners/${runnerId}/files`)).status).to.equal(200);
    expect((await pair.near.send('GET', `/runners/${runnerId}/files`)).status).to.equal(429);
    expect(pair.far.log.lines.at(-1)?.fields).to.include({ tokenName: 'default' });
  });

  it('lead to the address that the client used', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    const answer = await pair.near.send('POST', `/runners/${runnerId}/execute`, { command: 'true' });
    const { websocketUrl } = answer.json as { websocketUrl: string };
    expect(new URL(websocketUrl).host).to.equal(new URL(pair.near.server.url).host);
  });

  it('end at the owner when the client leaves', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    const held = gate();
    pair.far.files.updateGate = held.promise;
    const leaving = new AbortController();
    const sent = fetch(`${pair.near.base}/runners/${runnerId}/files`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: '{"delete":["./*"]}',
      signal: leaving.signal,
    }).catch(() => undefined);
    await eventually('the owner to be at work', () => pair.far.files.updates === 1);
    leaving.abort();
    await sent;
    const hasLeft = (): boolean =>
      pair.far.log.lines.some(
        ({ fields }) => fields['status'] === 'client left' && fields['method'] === 'PATCH',
      );
    await eventually('the owner to see it', hasLeft);
    held.open();
  });

  it('are served here once the runner was taken over', async () => {
    await using pair = await ApiPair.open();
    const { near, farReplica } = pair;
    const claim = await near.send('POST', '/runners', { executionEnvironmentId: 1 });
    const { runnerId } = claim.json as { runnerId: string };
    near.runners.elsewhere.set(runnerId, farReplica);
    near.runners.onLocate = () => {
      near.runners.elsewhere.delete(runnerId);
      return Promise.resolve({ kind: 'own' });
    };
    const answer = await near.send('POST', `/runners/${runnerId}/execute`, { command: 'true' });
    expect(answer.status).to.equal(200);
    expect(near.executions.last.request.command).to.equal('true');
  });

  it('cost no look-up where the runner is here', async () => {
    await using pair = await ApiPair.open();
    await pair.near.prepare();
    expect(pair.near.runners.calls.flat()).not.to.include('locate');
  });

  it('leave nothing behind at the end', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    await pair.near.send('GET', `/runners/${runnerId}/files`);
    expect(pair.nearCluster.listeners).to.equal(0);
    // It is kept for the next request.
    await eventually('the other connections to be closed', () => pair.far.server.connections === 1);
    await pair.near.server.stop();
    await eventually('the connection to be closed', () => pair.far.server.connections === 0);
  });
});
