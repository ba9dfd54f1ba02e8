import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { Router } from 'express';
import { Authenticator } from '../../lib/api/access/authenticator.js';
import { createApp } from '../../lib/api/app.js';
import { createDocument } from '../../lib/api/openapi/document.js';
import type { OpenApiDocument } from '../../lib/api/openapi/types.js';
import { Contract } from '../support/contract.js';
import { TestApi } from '../support/test-api.js';

const document = createDocument({ version: '1.2.3', peerStatuses: false, maxBodyBytes: 2 ** 26 });

/** Path and methods of each route that the application has, parameters as the document writes them. */
function routesOf(router: Router): string[] {
  return router.stack.flatMap(({ route }) => (route ? [route.path.replace(/:(\w+)/g, '{$1}')] : []));
}

describe('the OpenAPI document', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open();
  });

  afterEach(() => api.server.stop());

  it('has every route of the application and no other', () => {
    const router = Reflect.get(createApp(api.deps, new Authenticator(api.deps)), 'router') as Router;
    const documented = Object.keys(document.paths).map((path) => `/api/v1${path}`);
    expect(routesOf(router)).to.have.members([...documented, '/docs']);
  });

  it('has every method of every route and no other', async () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const { headers, status } = await api.send('OPTIONS', path.replace('{id}', '1'));
      const allowed = (headers.get('allow') ?? '').split(', ');
      const methods = Object.keys(item).map((name) => name.toUpperCase());
      expect(status, path).to.equal(405);
      expect(allowed, path).to.have.members(methods.includes('GET') ? [...methods, 'HEAD'] : methods);
    }
  });

  it('is served as it is made', async () => {
    const answer = await api.send('GET', '/openapi.json');
    expect(answer.status).to.equal(200);
    expect(answer.json).to.deep.equal(JSON.parse(JSON.stringify(document)));
  });

  it('says which scope each operation needs', () => {
    const scopes = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { security }]) =>
        [`${method} ${path}`, ...(security[0]?.['token'] ?? [])].join(' '),
      ),
    );
    expect(scopes).to.include.members([
      'get /health',
      'get /version',
      'get /statistics/execution-environments read',
      'put /execution-environments/{id} environments',
      'post /runners runners',
      'patch /runners/{id}/files runners',
    ]);
    expect(document.paths['/health']?.get?.security).to.deep.equal([]);
    expect(document.paths['/version']?.get?.security).to.deep.equal([{ token: [] }, { bearer: [] }]);
  });

  it('has the statuses that api.peerStatuses makes of others', () => {
    const peer = createDocument({ version: '1.2.3', peerStatuses: true, maxBodyBytes: 2 ** 26 });
    const statuses = (of: OpenApiDocument, path: string, method: 'get' | 'post'): string[] =>
      Object.keys(of.paths[path]?.[method]?.responses ?? {});
    expect(statuses(document, '/runners/{id}/execute', 'post')).to.include.members(['429', '503']);
    expect(statuses(peer, '/runners/{id}/execute', 'post')).not.to.include.oneOf(['429', '503']);
    expect(statuses(peer, '/health', 'get')).to.include('503');
  });

  it('is valid as a whole for whoever resolves its references', () => {
    const named = Object.keys(document.components.schemas);
    const referred = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(new Set(referred)).to.deep.equal(new Set(named));
    const links = Object.values(document.paths).flatMap((item) =>
      Object.values(item).flatMap(({ responses }) =>
        Object.values(responses).flatMap((response) => Object.keys(response.links ?? {})),
      ),
    );
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    expect(ids).to.include.members(links);
  });

  describe('as a page', () => {
    it('names every operation and every schema, with nothing to load or to run', async () => {
      const answer = await api.send('GET', '/docs');
      expect(answer.status).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal('text/html; charset=utf-8');
      for (const [path, item] of Object.entries(document.paths)) {
        expect(answer.text).to.include(`<code>/api/v1${path}</code>`);
        for (const { operationId, summary } of Object.values(item)) {
          expect(answer.text).to.include(`id="${operationId}"`).and.to.include(summary);
        }
      }
      for (const name of Object.keys(document.components.schemas)) {
        expect(answer.text).to.include(`id="schema-${name}"`);
      }
      expect(answer.text).not.to.match(/<script|<link|<img|<iframe|@import|url\(|\son\w+=|javascript:/i);
      const targets = [...answer.text.matchAll(/href="([^"]+)"/g)].map(([, target = '']) => target);
      expect(targets.filter((target) => !/^(#|\/api\/v1\/openapi\.json$)/.test(target))).to.deep.equal([]);
      for (const target of targets.filter((each) => each.startsWith('#'))) {
        expect(answer.text, target).to.include(`id="${target.slice(1)}"`);
      }
    });

    it('has a policy that allows its own style sheet and nothing else', async () => {
      const { headers, text } = await api.send('GET', '/docs');
      const [, sheet = ''] = /<style>([^]*?)<\/style>/.exec(text) ?? [];
      const hash = createHash('sha256').update(sheet).digest('base64');
      expect(headers.get('content-security-policy')).to.equal(
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      );
    });

    it('is found at /docs too', async () => {
      const response = await fetch(`${api.server.url}/docs`, {
        redirect: 'manual',
        headers: { connection: 'close' },
      });
      expect([response.status, response.headers.get('location')]).to.deep.equal([308, '/api/v1/docs']);
    });
  });

  describe('in the tests', () => {
    const contract = new Contract(document);
    const url = 'http://localhost/api/v1';
    const json = new Headers({ 'content-type': 'application/json; charset=utf-8' });
    const version = { method: 'GET', url: `${url}/version`, status: 200, headers: json, body: '"1"' };
    const claim = {
      method: 'POST',
      url: `${url}/runners`,
      status: 200,
      headers: json,
      body: '{"runnerId":"x","mappedPorts":[{"exposedPort":80,"hostAddress":"h:1"}]}',
    };

    it('allows what it describes', () => {
      expect(contract.faultsOf(version)).to.deep.equal([]);
      expect(contract.faultsOf(claim)).to.deep.equal([]);
    });

    for (const [what, seen] of [
      ['a status', { ...version, status: 202 }],
      ['a content type', { ...version, headers: new Headers({ 'content-type': 'text/plain' }) }],
      ['a body that is no JSON', { ...version, body: 'x' }],
      ['a body of another form', { ...version, body: '1' }],
      ['a field', { ...claim, body: '{"runnerId":"x","mappedPorts":[],"more":1}' }],
      [
        'a field further down',
        { ...claim, body: claim.body.replace('"exposedPort"', '"x":1,"exposedPort"') },
      ],
      ['a missing field', { ...claim, body: '{"mappedPorts":[]}' }],
      ['a missing header', { ...claim, status: 503, body: '{"message":"x","errorCode":"UNKNOWN"}' }],
      [
        'an errorCode of another status',
        {
          ...claim,
          status: 503,
          headers: new Headers([...json, ['retry-after', '1']]),
          body: '{"message":"x","errorCode":"PREWARMING_POOL_DEPLETING"}',
        },
      ],
      ['a body where there is none', { ...claim, method: 'DELETE', url: `${url}/runners/x`, status: 204 }],
      ['success at an unknown path', { ...version, url: `${url}/nothing` }],
      [
        'a failure of another form at an unknown path',
        { ...version, url: `${url}/x`, status: 404, body: '{}' },
      ],
    ] as const) {
      it(`does not allow ${what} that it does not describe`, () => {
        expect(contract.faultsOf(seen)).to.have.length.greaterThan(0);
      });
    }
  });
});
