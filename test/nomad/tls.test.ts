import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { allocationId } from '../../lib/base/ids.js';
import { nomadClient } from '../support/nomad-client.js';
import type { TestClientOptions } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';

const file = (name: string): string => path.resolve(import.meta.dirname, '../fixtures/tls', name);
const pem = (name: string): string => readFileSync(file(name), 'utf8');

const SERVER = { cert: pem('server.pem'), key: pem('server-key.pem') };
const NAMED: TestClientOptions = { caCert: file('ca.pem'), tlsServerName: 'server.global.nomad' };
const WITH_CERTIFICATE: TestClientOptions = {
  ...NAMED,
  clientCert: file('client.pem'),
  clientKey: file('client-key.pem'),
};

/** `ok`, or the code of the failure, for a request and for an exec. */
async function outcome(nomad: ScriptedNomad, options: TestClientOptions): Promise<string[]> {
  await using client = nomadClient(nomad.address, options);
  const exec = { allocationId: allocationId('a'), task: 't', command: ['true'], tty: false };
  const outcomes = await Promise.allSettled([client.leader(), client.openExec(exec)]);
  return outcomes.map((each) =>
    each.status === 'fulfilled' ? 'ok' : String((each.reason as { code: unknown }).code),
  );
}

describe('NomadClient over TLS', () => {
  let nomad: ScriptedNomad;

  async function start(tls: { cert: string; key: string; ca?: string }): Promise<void> {
    nomad = await ScriptedNomad.start({ tls });
    nomad.on('GET', '/v1/status/leader', reply({ body: '"a"' }));
  }

  afterEach(() => nomad.stop());

  const both = (code: string): string[] => [code, code];

  it('trusts a server by its authority and its name', async () => {
    await start(SERVER);
    expect(await outcome(nomad, NAMED)).to.deep.equal(both('ok'));
    expect(await outcome(nomad, { caCert: file('ca.pem') }), 'another name').to.deep.equal(
      both('NOMAD_UNREACHABLE'),
    );
    expect(await outcome(nomad, { tlsServerName: 'server.global.nomad' }), 'no authority').to.deep.equal(
      both('NOMAD_UNREACHABLE'),
    );
    expect(await outcome(nomad, { skipVerify: true })).to.deep.equal(both('ok'));
  });

  it('shows its certificate to a server that asks for one', async () => {
    await start({ ...SERVER, ca: pem('ca.pem') });
    expect(await outcome(nomad, WITH_CERTIFICATE)).to.deep.equal(both('ok'));
    expect(await outcome(nomad, NAMED)).to.deep.equal(both('NOMAD_UNREACHABLE'));
  });

  it('names the option that cannot be used', async () => {
    await start(SERVER);
    for (const [options, name] of [
      [{ ...NAMED, caCert: file('missing.pem') }, 'nomad.caCert'],
      [{ ...NAMED, clientCert: file('client.pem') }, 'nomad.clientKey'],
    ] as const) {
      expect(await outcome(nomad, options)).to.deep.equal(both('INVALID_CONFIG'));
      await using client = nomadClient(nomad.address, options);
      const error = await client.leader().catch((thrown: unknown) => thrown);
      expect((error as Error).message).to.contain(name);
    }
  });
});
