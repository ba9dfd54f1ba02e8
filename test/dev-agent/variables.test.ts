import { expect } from 'chai';
import { RawAgent } from './support/raw-agent.js';

interface Row {
  readonly Path: string;
  readonly [field: string]: unknown;
}

describe('the list of variables of the embedded agent', () => {
  let raw: RawAgent;

  beforeEach(async () => {
    raw = await RawAgent.start({ driver: 'simulated' });
    for (const name of ['serai/b', 'serai/a/x', 'seraient', 'serai/c', 'other']) await put(name);
    await put('serai/elsewhere', 'runners');
  });

  afterEach(() => raw.stop());

  async function put(name: string, namespace = 'default'): Promise<void> {
    await raw.request('PUT', `/v1/var/${name}?namespace=${namespace}`, { Items: { secret: 'hunter2' } });
  }

  function pathsOf(rows: readonly Row[]): string[] {
    return rows.map(({ Path }) => Path);
  }

  it('has those of a prefix and a namespace in order of path, without what they hold', async () => {
    const { body, headers } = await raw.request<Row[]>('GET', '/v1/vars?prefix=serai/');
    expect(pathsOf(body)).to.deep.equal(['serai/a/x', 'serai/b', 'serai/c']);
    expect(body[0]).to.have.all.keys(
      'Namespace',
      'Path',
      'CreateIndex',
      'ModifyIndex',
      'CreateTime',
      'ModifyTime',
    );
    expect(JSON.stringify(body)).to.not.include('hunter2');
    expect(Number(headers.get('x-nomad-index'))).to.be.at.least(Number(body.at(-1)?.['ModifyIndex']));
    expect(pathsOf(await raw.get('/v1/vars?namespace=runners'))).to.deep.equal(['serai/elsewhere']);
    expect(await raw.get('/v1/vars?namespace=*')).to.have.length(6);
    expect(await raw.get('/v1/vars?prefix=nothing')).to.deep.equal([]);
  });

  it('comes in pages', async () => {
    const first = await raw.request<Row[]>('GET', '/v1/vars?prefix=serai/&per_page=2');
    expect(pathsOf(first.body)).to.deep.equal(['serai/a/x', 'serai/b']);
    const token = first.headers.get('x-nomad-nexttoken') ?? '';
    const second = await raw.request<Row[]>('GET', `/v1/vars?prefix=serai/&per_page=2&next_token=${token}`);
    expect(pathsOf(second.body)).to.deep.equal(['serai/c']);
    expect(second.headers.has('x-nomad-nexttoken')).to.equal(false);
  });

  it('shows a change by the index', async () => {
    const index = async (): Promise<unknown> =>
      (await raw.get<Row[]>('/v1/vars?prefix=serai/b'))[0]?.['ModifyIndex'];
    const before = await index();
    expect(await index()).to.equal(before);
    await put('serai/b');
    expect(await index()).to.be.greaterThan(before as number);
  });
});
