import { once } from 'node:events';
import { connect } from 'node:net';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { ApiPair } from '../../support/api-pair.js';
import { eventually } from '../../support/waiting.js';

/** What an owner got, and what its raw answer became. */
async function pass(head: readonly string[], body: string, fields: readonly string[] = []) {
  await using pair = await ApiPair.open();
  const runnerId = await pair.claim();
  const seen: { rawHeaders: string[]; url: string; body: string }[] = [];
  const owner = createServer((req, res) => {
    let text = '';
    req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    req.on('end', () => {
      seen.push({ rawHeaders: req.rawHeaders, url: req.url ?? '', body: text });
      res.writeHead(200, [...fields, 'Content-Length', '2']).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(owner, 'listening');
  const { port } = owner.address() as AddressInfo;
  pair.near.runners.elsewhere.set(runnerId, pair.nearCluster.add('raw', `http://127.0.0.1:${port}`));
  const near = new URL(pair.near.server.url);
  const socket = connect(Number(near.port), near.hostname);
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
  const [line = '', ...rest] = head;
  const lines = [line.replace('ID', runnerId), `Host: ${near.host}`, ...rest, '', ''];
  socket.write(lines.join('\r\n') + body, 'latin1');
  await eventually('the answer', () => answer.includes('\r\n\r\n'));
  socket.destroy();
  owner.close();
  owner.closeAllConnections();
  return { seen, answer };
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

const EXECUTE = 'POST /api/v1/runners/ID/execute HTTP/1.1';

describe('header fields of a hop', () => {
  it('keep method, target, body and fields as they are, in order and more than once', async () => {
    const { seen } = await pass(
      [
        'POST /api/v1/runners/ID/execute?a=%2F&b=%20%e2%82%ac HTTP/1.1',
        'X-A: 1',
        'x-b: \xe9',
        'X-A: 2',
        'Content-Length: 2',
      ],
      '{}',
    );
    const [got] = seen;
    expect(got?.url).to.match(/\/execute\?a=%2F&b=%20%e2%82%ac$/);
    expect(got?.body).to.equal('{}');
    expect(valuesOf(got?.rawHeaders ?? [], 'x-a')).to.deep.equal(['1', '2']);
    expect(got?.rawHeaders).to.include.members(['X-A', 'x-b']);
    expect(valuesOf(got?.rawHeaders ?? [], 'x-b')).to.deep.equal(['\xe9']);
  });

  it('leave out those of one connection, the credentials, and what Connection names', async () => {
    const { seen } = await pass(
      [
        EXECUTE,
        'Connection: keep-alive, X-Mine, Content-Length, Serai-Hop, Host',
        'X-Mine: 1',
        'Keep-Alive: timeout=5',
        'TE: trailers',
        'Proxy-Authorization: Basic abc',
        'Authorization: Bearer abc',
        'Poseidon-Token: abc',
        'Upgrade: h2c',
        'HTTP2-Settings: AAA',
        'Content-Length: 2',
      ],
      '{}',
    );
    const names = (seen[0]?.rawHeaders ?? [])
      .filter((_, index) => index % 2 === 0)
      .map((name) => name.toLowerCase());
    expect(names).to.have.members(['host', 'serai-hop', 'connection', 'expect', 'content-length']);
    expect(valuesOf(seen[0]?.rawHeaders ?? [], 'connection')).to.deep.equal(['keep-alive']);
    expect(seen[0]?.body).to.equal('{}');
  });

  it('frame a body once, whatever the client says of it', async () => {
    const chunked = await pass([EXECUTE, 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n');
    expect(valuesOf(chunked.seen[0]?.rawHeaders ?? [], 'transfer-encoding')).to.deep.equal(['chunked']);
    expect(valuesOf(chunked.seen[0]?.rawHeaders ?? [], 'content-length')).to.deep.equal([]);
    expect(chunked.seen[0]?.body).to.equal('{}');
    const none = await pass([EXECUTE], '');
    expect(valuesOf(none.seen[0]?.rawHeaders ?? [], 'content-length')).to.deep.equal(['0']);
    for (const smuggled of [
      ['Transfer-Encoding: chunked', 'Content-Length: 5'],
      ['Content-Length: 2', 'Content-Length: 5'],
      ['Transfer-Encoding: chunked, identity'],
      ['Transfer-Encoding : chunked'],
    ]) {
      const { seen, answer } = await pass([EXECUTE, ...smuggled], '0\r\n\r\n');
      expect(seen, smuggled.join()).to.deep.equal([]);
      expect(answer).to.match(/^HTTP\/1\.1 400 /);
    }
  });

  it('of the answer go to the client, but for those of the connection', async () => {
    const { answer } = await pass([EXECUTE, 'Content-Length: 2'], '{}', [
      'X-A',
      '1',
      'x-a',
      '2',
      'Serai-Hop',
      'secret',
      'Keep-Alive',
      'timeout=1',
      'Proxy-Authenticate',
      'Basic',
    ]);
    const head = answer.slice(0, answer.indexOf('\r\n\r\n'));
    expect(head).to.match(/^HTTP\/1\.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\n/);
    expect(head).not.to.match(/serai-hop|timeout=1\b|proxy-/i);
    expect(answer).to.match(/\r\n\r\n\{\}$/);
  });
});
