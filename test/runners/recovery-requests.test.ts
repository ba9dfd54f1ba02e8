import { expect } from 'chai';
import { replicaId } from '../../lib/base/ids.js';
import { EnvironmentStore } from '../../lib/environments/store.js';
import { createTemplateJob } from '../../lib/environments/template.js';
import type { NomadClient } from '../../lib/nomad/client.js';
import { createClaimedJob, createRunnerJob } from '../../lib/runners/job.js';
import type { Listing } from '../../lib/runners/observation.js';
import { readListing } from '../../lib/runners/recover.js';
import { anEnvironment, theBaseJob } from '../support/environments.js';
import { nomadClient } from '../support/nomad-client.js';
import type { ScriptedCall } from '../support/scripted-nomad.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';
import { eventually, gate } from '../support/waiting.js';

const ENVIRONMENT = anEnvironment();
const TEMPLATE = createTemplateJob(ENVIRONMENT, theBaseJob(), 'bridge');
const idOf = (n: number): string => `7-00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** Answers one page of a list, as Nomad does: a page begins with the row that its token numbers. */
function page(call: ScriptedCall, rows: readonly object[]): void {
  const { query } = call.request;
  const [start, size] = [Number(query.get('next_token') ?? 0), Number(query.get('per_page'))];
  const end = start + size;
  const headers: Record<string, string> = end < rows.length ? { 'x-nomad-nexttoken': String(end) } : {};
  call.reply({ headers, body: rows.slice(start, end) });
}

describe('reading all of Nomad', () => {
  let nomad: ScriptedNomad;
  let client: NomadClient;
  /** Opens for the jobs of runners that are being read. */
  let looks = gate();
  /** Jobs of runners that are being read. */
  let looking = 0;

  beforeEach(async () => {
    [looks, looking] = [gate(), 0];
    nomad = await ScriptedNomad.start();
    client = nomadClient(nomad.address);
  });

  afterEach(async () => {
    await client.stop();
    await nomad.stop();
  });

  /** A Nomad with that many runners, the first of them in use. */
  function script({ runners, used }: { runners: number; used: number }): void {
    const row = (ID: string): object => ({
      ...{ ID, Status: 'running', Stop: false, CreateIndex: 1, ModifyIndex: 2, JobModifyIndex: 2 },
      Meta: { serai_spec: ENVIRONMENT.specHash },
    });
    const ids = Array.from({ length: runners }, (_, n) => idOf(n));
    nomad.on('GET', '/v1/jobs', (call) => {
      const isOfUsed = call.request.query.get('filter')?.includes('"used"');
      page(call, (isOfUsed ? ids.slice(0, used) : ['template-7', ...ids]).map(row));
    });
    nomad.on('GET', '/v1/allocations', (call) => {
      const states = { ClientStatus: 'running', DesiredStatus: 'run', CreateIndex: 1, ModifyIndex: 2 };
      page(
        call,
        ids.map((JobID, n) => ({ ID: `a${n}`, JobID, NodeID: 'n', ...states })),
      );
    });
    nomad.on('GET', '/v1/nodes', reply({ body: [] }));
    nomad.on('GET', '/v1/job/template-7', reply({ body: { ...TEMPLATE, JobModifyIndex: 2 } }));
    const stored = {
      environment: ENVIRONMENT,
      foreign: false,
      job: TEMPLATE,
      jobModifyIndex: 2,
      dead: false,
      deleting: false,
    };
    nomad.on('GET', /^\/v1\/job\/7-/, async (call) => {
      looking += 1;
      await looks.promise;
      looking -= 1;
      const id = call.request.path.slice('/v1/job/'.length) as never;
      call.reply({ body: createClaimedJob(createRunnerJob(stored, id), 60, replicaId('self')) });
    });
  }

  function read(isKnown = false): Promise<Listing> {
    const store = new EnvironmentStore({ jobs: client.jobs, base: theBaseJob(), networkMode: 'bridge' });
    return readListing({
      ...{ nomad: client, store, startedAt: 0, isKnown: () => isKnown },
      signal: new AbortController().signal,
    });
  }

  it('takes a page of 500 at a time, and a request for each runner in use, at most 20 at once', async () => {
    script({ runners: 1_200, used: 60 });
    nomad.on('GET', '/v1/status/leader', reply({ body: '"here"' }));
    const reading = read();
    await eventually('twenty looks', () => looking === 20);
    // Whatever was sent beside them has arrived when a few more questions are answered.
    for (let n = 0; n < 5; n += 1) await client.leader();
    expect(looking).to.equal(20);
    looks.open();
    const { runners, allocations, templates } = await reading;
    expect([runners.length, allocations.length, templates.environments.length]).to.deep.equal([
      1_200, 1_200, 1,
    ]);
    expect(runners.filter(({ used }) => used?.timeoutSeconds === 60)).to.have.length(60);
    const of = (path: RegExp): number => nomad.requests.filter((request) => path.test(request.path)).length;
    // Three pages of jobs and of allocations, one of used runners.
    expect([of(/jobs$/), of(/allocations$/), of(/nodes$/)]).to.deep.equal([4, 3, 1]);
    expect([of(/job\/template-/), of(/job\/7-/), nomad.requests.length]).to.deep.equal([1, 60, 69 + 5]);
  });

  it('asks for no runner whose claim is known already', async () => {
    script({ runners: 100, used: 100 });
    await read(true);
    expect(nomad.requests).to.have.length(5);
  });
});
