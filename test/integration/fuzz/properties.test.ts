import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { expect } from 'chai';
import fc from 'fast-check';
import type { ExecuteAnswer, ExecuteBody } from '../../../lib/protocol/http.js';
import type { FileListAnswer } from '../../../lib/protocol/files.js';
import { SandboxBench } from '../../dev-agent/support/sandbox.js';
import { contractOf } from '../../support/contract.js';
import type { ServiceClient } from '../../support/test-service.js';
import { TestService } from '../../support/test-service.js';
import { SocketClient } from '../../support/websocket-client.js';

/** Runs of each property; FUZZ_RUNS=500 makes it a long one. */
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 12);

/** Any text that can stand in an argument vector: whole characters, no NUL. */
const plainText = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.constantFrom(
      '$(id)',
      '`id`',
      "a'b",
      '"',
      '\\',
      '\\n',
      'a\nb',
      '-n',
      ' x ',
      '%s',
      '\t',
      ';id;',
      '\r\n',
      '!!',
    ),
  )
  .map((text) => text.replaceAll('\0', ''));

const fileName = plainText
  .map((text) => text.replaceAll('/', '_'))
  .filter((name) => !['', '.', '..'].includes(name) && Buffer.byteLength(name) <= 200);

/** The whole service, HTTP to shell and back; in a sandbox, for nothing here may touch the machine. */
describe('the service, whatever texts it is given', function () {
  this.timeout(300_000);
  let bench: SandboxBench;
  let opened: TestService;
  let client: ServiceClient;
  let runnerId: string;

  before(async function () {
    bench = await SandboxBench.open(this);
    opened = await TestService.open({}, bench.driver);
    ({ client } = opened);
    await client.openPool(1);
    runnerId = await client.claim();
  });
  after(async () => {
    await opened?.[Symbol.asyncDispose]();
    await bench?.close();
  });

  const raw = (path: string): Promise<Response> =>
    client.send('GET', `/runners/${runnerId}/files/raw?path=${encodeURIComponent(path)}`);

  /** Standard output of a command that keeps bytes exact. */
  async function outputOf(body: Pick<ExecuteBody, 'command' | 'environment'>): Promise<string> {
    const answer = await client.send('POST', `/runners/${runnerId}/execute`, { ...body, interactive: false });
    expect(answer.status).to.equal(200);
    const socket = await SocketClient.open(((await answer.json()) as ExecuteAnswer).websocketUrl);
    await socket.closed();
    expect(socket.messages.at(-1)).to.include({ type: 'exit', data: 0 });
    return socket.text('stdout');
  }

  it('keeps names and contents of files as they are [A3-72, A3-82, B8]', async () => {
    const tree = fc.dictionary(fileName, fc.uint8Array({ maxLength: 40_000 }), { maxKeys: 5 });
    await fc.assert(
      fc.asyncProperty(tree, async (files) => {
        const wanted = Object.entries(files);
        const copy = wanted.map(([name, bytes]) => ({
          path: `./${name}`,
          content: Buffer.from(bytes).toString('base64'),
        }));
        const written = await client.send('PATCH', `/runners/${runnerId}/files`, { delete: ['./*'], copy });
        expect(written.status).to.equal(204);
        const list = (await (
          await client.send('GET', `/runners/${runnerId}/files`)
        ).json()) as FileListAnswer;
        expect(list.files.map(({ name, size }) => [name, size])).to.have.deep.members(
          wanted.map(([name, bytes]) => [`./${name}`, bytes.length]),
        );
        for (const [name, bytes] of wanted) {
          const answer = await raw(`./${name}`);
          expect(answer.headers.get('content-length')).to.equal(String(bytes.length));
          expect(Buffer.from(await answer.arrayBuffer()).equals(Buffer.from(bytes)), name).to.equal(true);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('hands values of variables on as they are [B9]', async () => {
    await fc.assert(
      fc.asyncProperty(plainText, plainText, async (first, second) => {
        const environment = { FIRST: first, second_2: second };
        const output = await outputOf({ command: 'printf "%s|%s" "$FIRST" "$second_2"', environment });
        expect(output).to.equal(`${first}|${second}`);
      }),
      { numRuns: RUNS },
    );
  });

  it('runs commands as they are written [B10]', async () => {
    await fc.assert(
      fc.asyncProperty(plainText, async (text) => {
        const quoted = `'${text.replaceAll("'", `'\\''`)}'`;
        expect(await outputOf({ command: `printf %s ${quoted}\n# done` })).to.equal(text);
      }),
      { numRuns: RUNS },
    );
  });

  it('takes no part of a path as a command [A4-85, B8]', async () => {
    const planted = [
      '$(touch /tmp/planted)',
      '`touch /tmp/planted`',
      ';touch /tmp/planted',
      "'; touch /tmp/planted '",
    ];
    for (const path of planted) {
      for (const privileged of [true, false]) {
        const query = `path=${encodeURIComponent(path)}&privilegedExecution=${privileged}`;
        expect((await client.send('GET', `/runners/${runnerId}/files?${query}`)).status, path).to.equal(424);
        expect((await client.send('GET', `/runners/${runnerId}/files/raw?${query}`)).status, path).to.equal(
          424,
        );
      }
      const answer = await client.send('PATCH', `/runners/${runnerId}/files`, { delete: [path] });
      expect(answer.status, path).to.equal(204);
    }
    expect((await raw('/tmp/planted')).status).to.equal(424);
  });

  it('answers any path and any query as the document has it', async () => {
    const contract = contractOf();
    const segment = fc.oneof(
      fc.constantFrom(
        'runners',
        'files',
        'raw',
        'execute',
        'websocket',
        'session',
        'execution-environments',
        '',
        '.',
        '..',
        '%',
      ),
      fc.constant(runnerId),
      plainText.map(encodeURIComponent),
      fc.string({ unit: fc.constantFrom(...'%af09/;:@&=+$,~*!()'), maxLength: 12 }),
    );
    const query = fc.oneof(
      fc.constant(''),
      fc
        .tuple(fc.constantFrom('path', 'recursive', 'fetch', 'executionID', 'x'), plainText)
        .map(([name, value]) => `?${name}=${encodeURIComponent(value)}`),
      fc
        .string({ unit: fc.constantFrom(...'%af09/;:@&=+$,~*!()?'), maxLength: 20 })
        .map((text) => `?${text}`),
    );
    const target = fc
      .tuple(fc.array(segment, { maxLength: 4 }), query)
      .map(([parts, end]) => parts.join('/') + end);
    const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'OPTIONS');
    await fc.assert(
      fc.asyncProperty(method, target, async (verb, path) => {
        const url = new URL(client.base);
        const seen = await send(verb, Number(url.port), `/api/v1/${path}`);
        expect(seen.status, `${verb} ${path}`).to.be.lessThan(500);
        // Paths with dots are served as they stand, but a URL object resolves them.
        if (!/(^|\/)(\.|%2e)/i.test(path))
          contract.check({ method: verb, url: client.base + `/${path}`, ...seen });
      }),
      { numRuns: RUNS * 20 },
    );
  });

  it('copies and downloads 40 MB as they are, in parts of a request and of an answer [A3-79]', async () => {
    const content = randomBytes(40_000_000);
    const body = { copy: [{ path: 'large', content: content.toString('base64') }] };
    expect((await client.send('PATCH', `/runners/${runnerId}/files`, body)).status).to.equal(204);
    const answer = await raw('large');
    expect(answer.headers.get('content-length')).to.equal(String(content.length));
    const sum = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
    expect(sum(Buffer.from(await answer.arrayBuffer()))).to.equal(sum(content));
  });
});

/** Sends a target exactly as it is written, which fetch does not. */
function send(
  method: string,
  port: number,
  path: string,
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const req = httpRequest(
      { method, port, path, host: '127.0.0.1', headers: { connection: 'close' } },
      (res) => {
        let body = '';
        res.setEncoding('latin1').on('data', (text: string) => (body += text));
        res.on('end', () => {
          const headers = new Headers();
          for (const [name, value = ''] of Object.entries(res.headers)) headers.set(name, String(value));
          resolve({ status: res.statusCode ?? 0, headers, body });
        });
      },
    );
    req.on('error', reject);
    req.end();
  });
}
