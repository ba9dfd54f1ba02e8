import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { FakeClock } from '../support/fake-clock.js';
import type { Answer } from '../support/test-api.js';
import { TestApi } from '../support/test-api.js';
import { eventually } from '../support/waiting.js';

const ENVIRONMENT = {
  image: 'image',
  prewarmingPoolSize: 1,
  cpuLimit: 20,
  memoryLimit: 100,
  networkAccess: false,
  exposedPorts: null,
};

/** Body, and the field or words that the refusal names. */
type Case = readonly [body: unknown, named: string];

const BAD_SECONDS: readonly unknown[] = ['5', 1.5, -1, 1e15, 2_147_484, null, [5], true];

const CLAIMS: readonly Case[] = [
  [{}, 'executionEnvironmentId is missing'],
  [{ executionEnvironmentId: '1' }, 'executionEnvironmentId must be an integer'],
  [{ executionEnvironmentId: -1 }, 'executionEnvironmentId must be an integer from 0'],
  [{ executionEnvironmentId: 1.5 }, 'executionEnvironmentId must be an integer'],
  [{ executionEnvironmentId: null }, 'executionEnvironmentId must be an integer'],
  [{ executionEnvironmentId: 1, inactivityTimeOut: 5 }, 'unknown field "inactivityTimeOut"'],
  ['{"executionEnvironmentId":1,"__proto__":{}}', 'unknown field "__proto__"'],
  [[], 'the request must be an object'],
  ['null', 'the request must be an object, not null'],
  ['"1"', 'the request must be an object'],
  ...BAD_SECONDS.map((bad): Case => [
    { executionEnvironmentId: 1, inactivityTimeout: bad },
    'inactivityTimeout must be an integer',
  ]),
];

const EXECUTIONS: readonly Case[] = [
  [{}, 'command is missing'],
  [{ command: null }, 'command must be a text'],
  [{ command: 5 }, 'command must be a text without NUL and without half a surrogate pair, not 5'],
  [{ command: 'a\0b' }, 'command must be a text without NUL'],
  [{ command: 'a\ud800b' }, 'command must be a text without NUL and without half a surrogate pair'],
  [{ command: 'true', privilegedExecution: 'true' }, 'privilegedExecution must be true or false'],
  [{ command: 'true', privilegedExecution: null }, 'privilegedExecution must be true or false, not null'],
  [{ command: 'true', interactive: 1 }, 'interactive must be true or false, not 1'],
  [{ command: 'true', workingDirectory: '' }, 'workingDirectory must be a path'],
  [{ command: 'true', environment: [] }, 'environment must be an object'],
  [{ command: 'true', environment: { 'A-B': 'x' } }, 'the name "A-B" in environment'],
  [{ command: 'true', environment: { '': 'x' } }, 'the name "" in environment'],
  [{ command: 'true', environment: { A: 1 } }, 'environment.A must be a text'],
  [{ command: 'true', environment: { A: 'x\0' } }, 'environment.A must be a text without NUL'],
  [{ command: 'true', detach: true }, 'unknown field "detach"'],
  ...BAD_SECONDS.map((bad): Case => [{ command: 'true', timeLimit: bad }, 'timeLimit must be an integer']),
  ...['5', 1.5, -1, 2 ** 53, null].map((bad): Case => [
    { command: 'true', outputLimit: bad },
    'outputLimit must be an integer',
  ]),
];

const ENVIRONMENTS: readonly Case[] = [
  ...Object.keys(ENVIRONMENT).map((name): Case => {
    const rest = Object.entries(ENVIRONMENT).filter(([key]) => key !== name);
    return [Object.fromEntries(rest), `${name} is missing`];
  }),
  [{ ...ENVIRONMENT, image: '' }, 'image must be'],
  [{ ...ENVIRONMENT, image: 'a b' }, 'image must be'],
  [{ ...ENVIRONMENT, prewarmingPoolSize: -1 }, 'prewarmingPoolSize must be an integer'],
  [{ ...ENVIRONMENT, prewarmingPoolSize: 1e9 }, 'prewarmingPoolSize must be an integer'],
  [{ ...ENVIRONMENT, cpuLimit: 0 }, 'cpuLimit must be an integer from 1'],
  [{ ...ENVIRONMENT, memoryLimit: 1.5 }, 'memoryLimit must be an integer'],
  [{ ...ENVIRONMENT, networkAccess: 'no' }, 'networkAccess must be true or false'],
  [{ ...ENVIRONMENT, exposedPorts: [80, 65_536] }, 'exposedPorts[1] must be an integer from 1 to 65535'],
  [{ ...ENVIRONMENT, exposedPorts: [80, 80] }, 'exposedPorts must be a list of different ports'],
  [{ ...ENVIRONMENT, exposedPorts: '80' }, 'exposedPorts must be a list'],
  [{ ...ENVIRONMENT, name: '' }, 'name must be'],
  [{ ...ENVIRONMENT, user: '-rf' }, 'user must be'],
  [{ ...ENVIRONMENT, environment: { A: null } }, 'environment.A must be a text'],
  [{ ...ENVIRONMENT, id: '1' }, 'id must be an integer'],
  [{ ...ENVIRONMENT, imag: 'x' }, 'unknown field "imag"'],
];

describe('bodies and parameters', () => {
  let api: TestApi;
  let runnerId: string;

  before(async () => {
    api = await TestApi.open({ settings: { SERAI_SERVER_MAX_BODY_BYTES: '65536' } });
    ({ runnerId } = await api.prepare());
  });

  after(() => api.server.stop());

  function expectRefusal(answer: Answer, named: string): void {
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.json).to.have.all.keys('message');
    expect((answer.json as { message: string }).message).to.contain(named);
  }

  for (const [method, path, cases] of [
    ['POST', '/runners', CLAIMS],
    ['POST', '/runners/RUNNER/execute', EXECUTIONS],
    ['PUT', '/execution-environments/3', ENVIRONMENTS],
  ] as const) {
    it(`${method} ${path} answers 400, naming the field, to each of ${cases.length} bad bodies [B14]`, async () => {
      for (const [body, named] of cases) {
        expectRefusal(await api.send(method, path.replace('RUNNER', runnerId), body), named);
      }
    });
  }

  it('takes one JSON value and nothing after it [B22]', async () => {
    const good = '{"executionEnvironmentId":1}';
    for (const body of [`${good}${good}`, `${good}x`, '{"executionEnvironmentId":1', '', ' ', "{'a':1}"]) {
      expectRefusal(await api.send('POST', '/runners', body), 'the body');
    }
    expect((await api.send('POST', '/runners', ` ${good}\n`)).status).to.equal(200);
  });

  it('does not quote what a client sent', async () => {
    const secret = 'a-secret-value';
    const bodies = [
      `{"${secret}`,
      { command: { [secret]: 1 } },
      { command: 'true', environment: { A: [secret] } },
    ];
    for (const body of bodies) {
      const answer = await api.send('POST', `/runners/${runnerId}/execute`, body);
      expect(answer.status).to.equal(400);
      expect(answer.text).not.to.contain(secret);
    }
  });

  it('refuses bodies of another kind', async () => {
    const good = '{"executionEnvironmentId":1}';
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-encoding': 'gzip' },
    ]) {
      expectRefusal(await api.send('POST', '/runners', good, headers), 'Content-');
    }
    for (const type of ['application/json;charset=UTF-8', 'application/vnd.x+json', 'Application/JSON']) {
      expect((await api.send('POST', '/runners', good, { 'content-type': type })).status, type).to.equal(200);
    }
    const response = await fetch(`${api.base}/runners`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: gzipSync(good),
    });
    expect(response.status).to.equal(400);
    await response.arrayBuffer();
  });

  it('refuses ids of environments that are no plain integers', async () => {
    for (const id of ['x', '-1', '1.0', '01', '1e3', '0x1', '%201', '9007199254740992', '1'.repeat(40)]) {
      for (const method of ['GET', 'DELETE', 'PUT']) {
        expectRefusal(await api.send(method, `/execution-environments/${id}`), 'the id of an environment');
      }
    }
  });

  it('refuses parameters that are unknown, given twice, or of another value', async () => {
    expectRefusal(await api.send('GET', '/execution-environments?fetch=1'), 'fetch must be true or false');
    expectRefusal(await api.send('GET', '/execution-environments?fetch='), 'fetch must be true or false');
    expectRefusal(
      await api.send('GET', '/execution-environments?fetch=true&fetch=true'),
      '"fetch" is given twice',
    );
    expectRefusal(await api.send('GET', '/execution-environments?Fetch=true'), 'unknown field "Fetch"');
    expectRefusal(await api.send('GET', '/version?x'), 'unknown field "x"');
    expectRefusal(await api.send('DELETE', `/runners/${runnerId}?force=true`), 'unknown field "force"');
    expectRefusal(await api.send('GET', '/execution-environments/%E0%A4%A'), 'the path');
  });

  describe('of great size', () => {
    it('are refused with 413 before they are parsed, whether or not their length is said [B22]', async () => {
      const body = `{"executionEnvironmentId":1${' '.repeat(70_000)}}`;
      expect((await api.send('POST', '/runners', body)).status).to.equal(413);
      const chunked = await fetch(`${api.base}/runners`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', connection: 'close' },
        body: new ReadableStream({
          start(controller) {
            for (let sent = 0; sent < 40; sent += 1) controller.enqueue(Buffer.alloc(10_000, ' '));
            controller.close();
          },
        }),
        duplex: 'half',
      });
      expect(chunked.status).to.equal(413);
      expect(await chunked.json()).to.have.property('message');
    });

    it('are read to their end before a refusal, so that the client sees it [A3-71]', async () => {
      const body = Buffer.alloc(20_000_000, 'x');
      for (const [path, status] of [
        ['/runners/none/execute', 410],
        ['/runners', 413],
        ['/nothing', 404],
      ] as const) {
        const answer = await writeAll(`${api.base}${path}`, body);
        expect(answer, path).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      }
    });
  });

  it('gives up on a body that stops arriving', async () => {
    const clock = new FakeClock();
    await using slow = await TestApi.open({ clock });
    const socket = connect(Number(new URL(slow.base).port), '127.0.0.1');
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    const head = 'POST /api/v1/runners HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"exec';
    socket.write(head);
    await eventually('the timer of the body', () => clock.armed === 1);
    await clock.advance(59_000);
    expect(clock.armed).to.equal(1);
    await clock.advance(2000);
    await clock.advance(31_000);
    await eventually('the answer', () => answer.includes('the body stopped arriving'));
    expect(answer).to.match(/^HTTP\/1\.1 400 [^]*Connection: close/);
    await eventually('the end', () => slow.server.connections === 0);
    socket.destroy();
  });

  it('answers no body at all with 500', async () => {
    const texts = fc.oneof(fc.string(), fc.constantFrom('', '1', '-1', 'x'.repeat(100), '%', '\u0000'));
    const numbers = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(-1, 1.5, 1e15, 0, 1));
    const values = fc.oneof(texts, numbers, fc.boolean(), fc.constant(null), fc.jsonValue());
    const field = (name: string) =>
      fc.option(values, { nil: undefined }).map((value) => [name, value] as const);
    const fields = (names: readonly string[]) =>
      fc.tuple(...names.map(field), fc.tuple(fc.string(), values)).map((pairs) => Object.fromEntries(pairs));
    const requests = fc.oneof(
      fc.record({
        method: fc.constant('POST'),
        path: fc.constant('/runners'),
        body: fields(['executionEnvironmentId', 'inactivityTimeout']),
      }),
      fc.record({
        method: fc.constant('POST'),
        path: fc.constant(`/runners/${runnerId}/execute`),
        body: fields([
          'command',
          'privilegedExecution',
          'environment',
          'timeLimit',
          'interactive',
          'workingDirectory',
        ]),
      }),
      fc.record({
        method: fc.constant('PUT'),
        path: fc
          .oneof(fc.nat(), fc.string())
          .map((id) => `/execution-environments/${encodeURIComponent(id)}`),
        body: fields([...Object.keys(ENVIRONMENT), 'name', 'user', 'environment']),
      }),
      fc.record({
        method: fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH'),
        path: fc.webPath().map((path) => path.replaceAll('\\', '/')),
        body: fc.jsonValue().map((value) => value),
      }),
    );
    await fc.assert(
      fc.asyncProperty(requests, async ({ method, path, body }) => {
        const answer = await api.send(method, path, method === 'GET' ? undefined : body);
        expect(answer.status).to.be.lessThan(500);
        if (answer.status >= 400) expect(answer.json).to.have.property('message');
      }),
      { numRuns: 300 },
    );
  });
});

/** Sends a request whose client reads no answer before it has written everything. */
function writeAll(url: string, body: Buffer): Promise<string> {
  const { hostname, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.on('error', reject);
    socket.write(
      `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
        `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body, () => {
      let answer = '';
      socket.setEncoding('utf8');
      socket.on('data', (text: string) => (answer += text));
      socket.on('end', () => resolve(answer));
      socket.resume();
    });
  });
}
