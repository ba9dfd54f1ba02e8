import { expect } from 'chai';
import { silentLogger } from '../../../lib/base/log.js';
import { NomadClient } from '../../../lib/nomad/client.js';
import { Connection } from '../../../lib/nomad/connection.js';
import { Http } from '../../../lib/nomad/http.js';
import { FakeClock } from '../../support/fake-clock.js';
import { nomadClientConfig } from '../../support/nomad-client.js';
import type { RecordedRequest } from '../../support/scripted-nomad.js';
import { reply, ScriptedNomad } from '../../support/scripted-nomad.js';
import { HTTP_REPLAYS } from './http-replays.js';
import type { HttpTranscript } from './transcripts.js';
import { httpTranscript, transcriptNames } from './transcripts.js';

describe('transcripts of HTTP', () => {
  let nomad: ScriptedNomad;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
  });

  afterEach(() => nomad.stop());

  it('are all replayed', () => {
    expect(Object.keys(HTTP_REPLAYS).sort()).to.deep.equal(transcriptNames('http'));
  });

  for (const [name, replay] of Object.entries(HTTP_REPLAYS)) {
    it(`are asked for and understood: ${name}`, async () => {
      const transcript = httpTranscript(name);
      const { request, response } = transcript;
      const url = new URL(request.path, 'http://nomad');
      const { status, headers = {}, body } = response;
      // Recorded pages name a next one; past the recording there is none.
      const isJson = headers['content-type'] === 'application/json' || typeof body !== 'string';
      const text = isJson ? JSON.stringify(body) : body;
      nomad.once(request.method, url.pathname, reply({ status, headers, body: text }));
      const config = nomadClientConfig(nomad.address, {
        token: request.headers?.['X-Nomad-Token'],
        namespace: url.searchParams.get('namespace') ?? undefined,
      });
      const deps = { clock: new FakeClock(), log: silentLogger };
      await using client = new NomadClient(config, deps);
      const http = new Http(new Connection(config, deps));
      try {
        await replay({ client, http, transcript });
      } finally {
        await http.close();
      }
      expect(nomad.requests).to.have.length(1);
      expectAsked(nomad.requests[0]!, transcript);
    });
  }
});

/** The client asked what was recorded; it may page, and leave defaults out. */
function expectAsked(asked: RecordedRequest, { request }: HttpTranscript): void {
  const query = new URL(request.path, 'http://nomad').searchParams;
  for (const [key, value] of query) {
    if (key !== 'per_page' && key !== 'resources') expect(asked.query.get(key), key).to.equal(value);
  }
  expect(asked.headers['x-nomad-token']).to.equal(request.headers?.['X-Nomad-Token']);
  const { body } = request;
  const isMistaken = typeof body === 'string' || JSON.stringify(body) === '{}'; // what no client of ours would send
  if (request.method === 'PUT' && body !== undefined && !isMistaken) expect(asked.json()).to.deep.equal(body);
}
