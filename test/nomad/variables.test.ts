import { expect } from 'chai';
import { nomadClient } from '../support/nomad-client.js';
import { reply, ScriptedNomad } from '../support/scripted-nomad.js';

describe('Variables.list', () => {
  let nomad: ScriptedNomad;

  beforeEach(async () => {
    nomad = await ScriptedNomad.start();
  });

  afterEach(() => nomad.stop());

  it('asks for a prefix, page after page, and takes what a row has beside path and index for nothing', async () => {
    await using client = nomadClient(nomad.address);
    const row = { Namespace: 'runners', CreateIndex: 1, CreateTime: 2, ModifyTime: 3, Lock: null };
    nomad.once(
      'GET',
      '/v1/vars',
      reply({
        body: [{ ...row, Path: 'a/1', ModifyIndex: 7 }],
        headers: { 'x-nomad-nexttoken': 'runners.a/2' },
      }),
    );
    nomad.once('GET', '/v1/vars', reply({ body: [{ ...row, Path: 'a/2', ModifyIndex: 9 }] }));
    expect(await client.variables.list('a/')).to.deep.equal([
      { path: 'a/1', modifyIndex: 7 },
      { path: 'a/2', modifyIndex: 9 },
    ]);
    expect(nomad.requests.map(({ query }) => [query.get('prefix'), query.get('next_token')])).to.deep.equal([
      ['a/', null],
      ['a/', 'runners.a/2'],
    ]);
  });
});
