import { inspect } from 'node:util';
import { expect } from 'chai';
import type { ErrorCode } from '../../lib/base/errors.js';
import { ServiceError } from '../../lib/base/errors.js';
import type { NomadClient } from '../../lib/nomad/client.js';
import { FakeClock } from '../support/fake-clock.js';
import { nomadClient } from '../support/nomad-client.js';
import type { Reply } from '../support/scripted-nomad.js';
import { deadAddress, reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { eventually, gate } from '../support/waiting.js';
import { failureOf } from '../support/failures.js';

const TOKEN = 'c3b8a7de-secret';
const LEADER = '/v1/status/leader';
const REGISTERED = reply({ body: { EvalID: 'e', JobModifyIndex: 5 } });

describe('NomadClient', () => {
  let nomad: ScriptedNomad;
  let clock: FakeClock;
  let client: NomadClient;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    clock = new FakeClock();
    client = nomadClient(nomad.address, { clock, token: TOKEN, namespace: 'runners', region: 'eu' });
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  it('sends the token as a header, and namespace and region with every request', async () => {
    nomad.on('PUT', '/v1/jobs', REGISTERED);
    await client.jobs.register({ ID: 'a' });
    const [request] = nomad.requests;
    expect(request?.headers).to.include({ 'x-nomad-token': TOKEN, 'content-type': 'application/json' });
    expect(Object.fromEntries(request?.query ?? [])).to.deep.equal({ namespace: 'runners', region: 'eu' });
  });

  it('keeps the path of an address, and escapes what comes from outside', async () => {
    await using behindProxy = nomadClient(`${nomad.address}/nomad/`, { clock });
    nomad.on('GET', /./, reply({ status: 404, body: 'job not found' }));
    expect(await behindProxy.jobs.get('a/../b?c#d')).to.equal(undefined);
    expect(nomad.requests[0]?.path).to.equal('/nomad/v1/job/a%2F..%2Fb%3Fc%23d');
    nomad.on('GET', /./, reply({ status: 404, body: 'variable not found' }));
    await client.variables.get('serai/a b/ü');
    expect(nomad.requests[1]?.path).to.equal('/v1/var/serai/a%20b/%C3%BC');
  });

  it('uses kept connections again', async () => {
    nomad.on('GET', LEADER, reply({ body: '"a"' }));
    for (let round = 0; round < 5; round += 1) await client.leader();
    expect(nomad.connections).to.equal(1);
  });

  it('does not send anything through a proxy of the environment', async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      http_proxy: 'http://127.0.0.1:1',
      HTTP_PROXY: 'http://127.0.0.1:1',
      no_proxy: '',
    });
    try {
      nomad.on('GET', LEADER, reply({ body: '"a"' }));
      expect(await client.leader()).to.equal('a');
    } finally {
      process.env = before;
    }
  });

  describe('failures', () => {
    const cases: readonly [string, Reply, ErrorCode][] = [
      ['a denial', { status: 403, body: 'Permission denied' }, 'NOMAD_REFUSED'],
      ['a token that is not known', { status: 403, body: 'ACL token not found' }, 'NOMAD_REFUSED'],
      ['a denial as a server fault', { status: 500, body: 'rpc error: Permission denied' }, 'NOMAD_REFUSED'],
      ['too many requests [A2-67]', { status: 429, body: 'too many' }, 'NOMAD_OVERLOADED'],
      ['no leader [A1-14]', { status: 500, body: 'No cluster leader' }, 'NOMAD_OVERLOADED'],
      [
        'a leader that changes',
        { status: 500, body: 'rpc error: leadership lost while committing log' },
        'NOMAD_OVERLOADED',
      ],
      ['a bad job with too many of something', { status: 500, body: 'too many volumes' }, 'NOMAD_REJECTED'],
      ['a bad filter', { status: 400, body: 'failed to read filter expression' }, 'NOMAD_REJECTED'],
      [
        'a fault of Nomad',
        { status: 500, body: 'index error: UUID must be 36 characters' },
        'NOMAD_REJECTED',
      ],
      ['a proxy without Nomad', { status: 502, body: '<html>' }, 'NOMAD_UNREACHABLE'],
      ['a path that is not there', { status: 404, body: '' }, 'NOMAD_NOT_FOUND'],
      ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:1/' } }, 'NOMAD_PROTOCOL'],
      ['a body that is no JSON', { body: 'hello' }, 'NOMAD_PROTOCOL'],
      ['a body of another shape', { body: { jobs: [] } }, 'NOMAD_PROTOCOL'],
      ['a row that lacks its id', { body: [{ Status: 'running' }] }, 'NOMAD_PROTOCOL'],
      ['no body', { body: '' }, 'NOMAD_PROTOCOL'],
    ];
    for (const [what, answer, code] of cases) {
      it(`reports ${what} as ${code}`, async () => {
        nomad.on('GET', '/v1/jobs', reply(answer));
        expect(await failureOf(client.jobs.list())).to.include({ code });
        expect(nomad.requests).to.have.length(1);
      });
    }

    it('reports what breaks off as NOMAD_UNREACHABLE, wherever it does', async () => {
      nomad.once('GET', '/v1/jobs', (call) => call.reset());
      expect(await failureOf(client.jobs.list())).to.include({ code: 'NOMAD_UNREACHABLE' });
      nomad.once('GET', '/v1/jobs', async (call) => {
        call.open(200, { 'content-length': '100' });
        await call.write('[{"ID"');
        call.reset();
      });
      expect(await failureOf(client.jobs.list())).to.include({ code: 'NOMAD_UNREACHABLE' });
    });

    it('carries method, path, status and a short body, and never the token', async () => {
      nomad.on('GET', '/v1/jobs', reply({ status: 500, body: `no ${'x'.repeat(100_000)}` }));
      const failure = await failureOf(client.jobs.list({ filter: 'ID == "secret"' }));
      expect(failure.details).to.include({ method: 'GET', path: '/v1/jobs', status: 500 });
      expect(failure.details['body']).to.have.length(2048);
      const dead = nomadClient(await deadAddress(), { clock, token: TOKEN });
      nomad.once('GET', LEADER, (call) => call.reset());
      for (const each of [failure, await failureOf(dead.leader()), await failureOf(client.leader())]) {
        const all = inspect(each, { depth: 20, showHidden: true });
        expect(all).to.not.contain(TOKEN).and.to.not.contain('secret');
      }
      expect(inspect(client, { depth: 20, showHidden: true })).to.not.contain(TOKEN);
    });

    it('keeps the values of a variable out of a conflict', async () => {
      const body = { Path: 'p', Items: { password: 'hunter2' } };
      nomad.on('PUT', '/v1/var/p', reply({ status: 409, body }));
      const failure = await failureOf(client.variables.put('p', {}, { cas: 1 }));
      expect(inspect(failure, { depth: 20 })).to.not.contain('hunter2');
    });

    it('takes only Nomad’s own words for absence', async () => {
      nomad.on('GET', '/v1/job/a', reply({ status: 404, body: '<html>not found</html>' }));
      expect(await failureOf(client.jobs.get('a'))).to.include({ code: 'NOMAD_NOT_FOUND' });
      nomad.on('GET', '/v1/job/a', reply({ status: 404, body: 'job not found' }));
      expect(await client.jobs.get('a')).to.equal(undefined);
    });

    it('refuses a token that no header can carry, without printing it', () => {
      expect(() => nomadClient(nomad.address, { token: 'two\nlines' }))
        .to.throw(ServiceError)
        .that.satisfies((error: Error) => !error.message.includes('two'));
    });

    it('refuses addresses that are none', () => {
      for (const addresses of [[], ['127.0.0.1:4646'], ['unix:///run/nomad.sock'], ['']]) {
        expect(() => nomadClient(addresses))
          .to.throw(ServiceError)
          .that.includes({ code: 'INVALID_CONFIG' });
      }
    });
  });

  describe('time', () => {
    it('limits every request, and leaves no timer and no connection', async () => {
      const asked = gate();
      nomad.on('GET', LEADER, async (call) => {
        call.open(200);
        await call.write('"half');
        asked.open();
      });
      const failing = failureOf(client.leader());
      await asked.promise;
      await clock.advance(9_999);
      expect(clock.armed).to.equal(1);
      await clock.advance(1);
      expect(await failing).to.include({ code: 'NOMAD_UNREACHABLE' });
      expect(clock.armed).to.equal(0);
      await eventually('the connection to be closed', () => nomad.connections === 0);
    });

    it('follows the signal of the caller with its reason', async () => {
      const asked = gate();
      nomad.on('GET', LEADER, () => asked.open());
      const controller = new AbortController();
      const failing = failureOf(client.leader(controller.signal));
      await asked.promise;
      const reason = new ServiceError('RUNNER_GONE', 'gone');
      controller.abort(reason);
      expect(await failing).to.equal(reason);
      expect(await failureOf(client.leader(controller.signal))).to.equal(reason);
      expect(nomad.requests).to.have.length(1);
    });

    it('asks with no more connections than allowed, in order [A2-67]', async () => {
      await using narrow = nomadClient(nomad.address, { clock, maxConnections: 3 });
      let most = 0;
      let current = 0;
      const full = gate();
      nomad.on('GET', LEADER, async (call) => {
        current += 1;
        most = Math.max(most, current);
        if (current === 3) full.open();
        await full.promise;
        current -= 1;
        call.reply({ body: '"a"' });
      });
      await Promise.all(Array.from({ length: 120 }, () => narrow.leader()));
      expect(most).to.equal(3);
      expect(nomad.connections).to.be.at.most(3);
    });
  });

  it('asks again over a new connection where a kept one had died unnoticed', async () => {
    nomad.on('GET', LEADER, reply({ body: '"a"' }));
    await client.leader();
    // As a server does that closes an idle connection while the next request is on its way.
    nomad.once('GET', LEADER, (call) => call.reset());
    expect(await client.leader()).to.equal('a');
    nomad.on('PUT', '/v1/jobs', (call) => call.reset());
    expect(await failureOf(client.jobs.register({ ID: 'a' }))).to.include({ code: 'NOMAD_UNREACHABLE' });
    expect(nomad.requests.filter(({ method }) => method === 'PUT')).to.have.length(1);
  });

  it('has no leader where Nomad names none', async () => {
    nomad.on('GET', LEADER, reply({ body: '""' }));
    expect(await failureOf(client.leader())).to.include({ code: 'NOMAD_OVERLOADED' });
  });

  it('takes the absence of what is to be removed for done', async () => {
    nomad.on('DELETE', '/v1/job/a', reply({ status: 404, body: 'job not found' }));
    nomad.on('DELETE', '/v1/var/a', reply({ status: 404, body: 'variable not found' }));
    expect(await client.jobs.purge('a')).to.deep.equal({ evaluationId: undefined });
    await client.variables.remove('a');
  });

  it('leaves nothing behind after stop', async () => {
    nomad.on('GET', LEADER, reply({ body: '"a"' }));
    const asked = gate();
    nomad.on('GET', '/v1/jobs', () => asked.open());
    const failing = failureOf(client.jobs.list());
    await asked.promise;
    await client.leader(); // leaves a second connection idle
    await Promise.all([client.stop(), client.stop()]);
    expect(await failing).to.include({ code: 'STOPPED' });
    expect(clock.armed).to.equal(0);
    await eventually('all connections to be closed', () => nomad.connections === 0);
    expect(await failureOf(client.leader())).to.include({ code: 'STOPPED' });
  });
});
