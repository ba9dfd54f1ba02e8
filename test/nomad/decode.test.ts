import { expect } from 'chai';
import { allocationId } from '../../lib/base/ids.js';
import type { NomadClient } from '../../lib/nomad/client.js';
import { FakeClock } from '../support/fake-clock.js';
import { nomadClient } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { failureOf } from '../support/failures.js';

const TOKEN = 'c3b8a7de-secret';

describe('what NomadClient reads', () => {
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

  describe('lists', () => {
    const row = (id: string) => ({
      ID: id,
      Status: 'running',
      CreateIndex: 1,
      ModifyIndex: 1,
      JobModifyIndex: 1,
    });

    it('are read page by page', async () => {
      const pages = new Map([
        [null, ['a', 'b', 'default.c']],
        ['default.c', ['c', 'd', 'default.e']],
        ['default.e', ['e', undefined, '']],
      ]);
      nomad.on('GET', '/v1/jobs', (call) => {
        const [first, second, next = ''] = pages.get(call.request.query.get('next_token')) ?? [];
        const rows = [first, second].flatMap((id) => (id === undefined ? [] : [row(id)]));
        call.reply({ body: rows, headers: next === '' ? {} : { 'X-Nomad-NextToken': next } });
      });
      const ids = (await client.jobs.list({ prefix: 'x', meta: true })).map(({ id }) => id);
      expect(ids).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
      for (const { query } of nomad.requests) expect(query.get('prefix')).to.equal('x');
    });

    it('do not turn in a circle', async () => {
      nomad.on('GET', '/v1/jobs', reply({ body: [], headers: { 'x-nomad-nexttoken': 'again' } }));
      expect(await failureOf(client.jobs.list())).to.include({ code: 'NOMAD_PROTOCOL' });
      expect(nomad.requests).to.have.length(2);
    });

    it('of allocations come with task states and resources only where asked for', async () => {
      nomad.on('GET', '/v1/allocations', reply({ body: [] }));
      await client.allocations.list();
      await client.allocations.list({ details: true, filter: 'JobID == "a"' });
      const [plain, full] = nomad.requests.map(({ query }) => Object.fromEntries(query));
      expect(plain).to.include({ task_states: 'false' }).and.not.have.any.keys('resources', 'filter');
      expect(full).to.include({ task_states: 'true', resources: 'true', filter: 'JobID == "a"' });
    });
  });

  it('takes what a newer Nomad may invent for the safe side', async () => {
    const allocation = {
      ID: 'a',
      JobID: 'j',
      ClientStatus: 'hibernating',
      DesiredStatus: 'hibernate',
      CreateIndex: 1,
      ModifyIndex: 2,
      TaskStates: { t: { State: 'sleeping', Failed: false, Events: [{ Type: 'Invented', ExitCode: 9 }] } },
    };
    nomad.on('GET', '/v1/allocation/a', reply({ body: allocation }));
    const decoded = await client.allocations.get(allocationId('a'));
    expect(decoded).to.include({ clientStatus: 'unknown', desiredStatus: 'stop', ports: undefined });
    expect(decoded?.tasks?.['t']).to.include({ state: 'pending', restarts: 0 });
    expect(decoded?.tasks?.['t']?.events[0]).to.include({ exitCode: undefined, oomKilled: false });
    const node = { ID: 'n', Name: 'n', Status: 'odd', SchedulingEligibility: 'maybe', ModifyIndex: 1 };
    nomad.on('GET', '/v1/nodes', reply({ body: [{ ...node, HTTPAddr: '[::1]:4646' }] }));
    const [read] = await client.nodes.list();
    expect(read).to.include({ status: 'disconnected', eligible: false, address: '::1' });
  });

  it('refuses a job document whose parts are not what they should be', async () => {
    const bad = [
      { ID: 7 },
      { ID: 'a', Meta: { used: true } },
      { ID: 'a', TaskGroups: {} },
      { ID: 'a', TaskGroups: [{ Name: 'g', Tasks: [{ Name: 't' }] }] },
      { ID: 'a', TaskGroups: [{ Name: 'g', Count: '1' }] },
    ];
    for (const body of bad) {
      nomad.on('GET', '/v1/job/a', reply({ body }));
      expect(await failureOf(client.jobs.get('a')), JSON.stringify(body)).to.include({
        code: 'NOMAD_PROTOCOL',
      });
    }
  });
});
