import { expect } from 'chai';
import { FakeClock } from '../support/fake-clock.js';
import { nomadClient } from '../support/nomad-client.js';
import { deadAddress, reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { gate } from '../support/waiting.js';
import { failureOf } from '../support/failures.js';

const LEADER = '/v1/status/leader';
const REGISTERED = reply({ body: { EvalID: 'e', JobModifyIndex: 5 } });

describe('NomadClient with several addresses', () => {
  let nomad: ScriptedNomad;
  let other: ScriptedNomad;
  let clock: FakeClock;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
    other = await ScriptedNomad.start();
    clock = new FakeClock();
  });

  afterEach(async () => {
    await nomad.stop();
    await other.stop();
  });

  it('goes on with the next where one fails, stays there, and says so once', async () => {
    const warnings: unknown[] = [];
    const log = {
      debug() {},
      info() {},
      error() {},
      warn: (text: string) => warnings.push(text),
      child: () => log,
    };
    await using both = nomadClient([nomad.address, other.address], { clock, log });
    nomad.on('GET', LEADER, (call) => call.reset());
    other.on('GET', LEADER, reply({ body: '"b"' }));
    const leaders = await Promise.all(Array.from({ length: 10 }, () => both.leader()));
    expect(leaders).to.deep.equal(Array(10).fill('b'));
    expect(await both.leader()).to.equal('b');
    expect(nomad.requests).to.have.length(10);
    expect(warnings).to.have.length(1);
  });

  it('asks the next where one has no leader, takes too long or lets nobody in', async () => {
    other.on('GET', LEADER, reply({ body: '"b"' }));
    for (const answer of [{ status: 500, body: 'No cluster leader' }, { status: 429 }]) {
      await using both = nomadClient([nomad.address, other.address], { clock });
      nomad.on('GET', LEADER, reply(answer));
      expect(await both.leader()).to.equal('b');
    }
    await using both = nomadClient([nomad.address, other.address], { clock });
    const asked = gate();
    nomad.on('GET', LEADER, () => asked.open());
    const leader = both.leader();
    await asked.promise;
    await clock.advance(10_000);
    expect(await leader).to.equal('b');
  });

  it('does not ask the next what one has answered', async () => {
    await using both = nomadClient([nomad.address, other.address], { clock });
    nomad.on('GET', '/v1/jobs', reply({ status: 403 }));
    expect(await failureOf(both.jobs.list())).to.include({ code: 'NOMAD_REFUSED' });
    expect(other.requests).to.have.length(0);
  });

  it('sends a write again only where certainly nobody had it', async () => {
    other.on('PUT', '/v1/jobs', REGISTERED);
    await using refused = nomadClient([await deadAddress(), other.address], { clock });
    expect(await refused.jobs.register({ ID: 'a' })).to.include({ evaluationId: 'e' });
    expect(other.requests).to.have.length(1);

    for (const [answer, code] of [
      [(call: { reset(): void }) => call.reset(), 'NOMAD_UNREACHABLE'],
      [reply({ status: 500, body: 'No cluster leader' }), 'NOMAD_OVERLOADED'],
    ] as const) {
      await using both = nomadClient([nomad.address, other.address], { clock });
      nomad.on('PUT', '/v1/jobs', answer);
      expect(await failureOf(both.jobs.register({ ID: 'a' }))).to.include({ code });
      expect(other.requests, 'nothing new').to.have.length(1);
      // The next request goes elsewhere at once.
      await both.jobs.register({ ID: 'b' });
      other.requests.pop();
    }
  });

  it('fails with the last failure where none is left', async () => {
    await using dead = nomadClient([await deadAddress(), await deadAddress()], { clock });
    const failure = await failureOf(dead.leader());
    expect(failure).to.include({ code: 'NOMAD_UNREACHABLE' });
    expect(failure.message).to.contain('ECONNREFUSED');
  });
});
