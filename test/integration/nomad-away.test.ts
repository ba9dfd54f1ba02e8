import { expect } from 'chai';
import type { Service } from '../../lib/service.js';
import { createService } from '../../lib/service.js';
import { Program } from '../support/program.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { RecordingLogger } from '../support/test-api.js';
import { configFor, ServiceClient, SHELL } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';
import type { SocketClient } from '../support/websocket-client.js';

/** Everything is answered within this time, whatever Nomad does. */
const ANSWER_MS = 5_000;
const UNREACHABLE = '503 NOMAD_UNREACHABLE, come again';

/** How Nomad goes away, and comes back. */
interface Absence {
  readonly name: string;
  readonly begin: (stage: Stage) => void | Promise<void>;
  readonly end: (stage: Stage) => void | Promise<void>;
  /** Connections break, so that nobody can know how a command goes on. */
  readonly breaksExecs: boolean;
}

const ABSENCES: readonly Absence[] = [
  {
    name: 'frozen',
    begin: ({ agent }) => agent.kill('SIGSTOP'),
    end: ({ agent }) => agent.kill('SIGCONT'),
    breaksExecs: false,
  },
  {
    name: 'unplugged',
    begin: ({ proxy }) => proxy.silence(),
    end: ({ proxy }) => proxy.restore(),
    breaksExecs: false,
  },
  {
    name: 'stopped',
    begin: ({ proxy }) => proxy.refuse(),
    end: ({ proxy }) => proxy.restore(),
    breaksExecs: true,
  },
];

/** A service in this process, the agent in one of its own, and the way between them. */
class Stage implements AsyncDisposable {
  readonly agent: Program;
  readonly nomad: string;
  readonly proxy: TcpProxy;
  readonly service: Service;
  readonly client: ServiceClient;

  private constructor(agent: Program, nomad: string, proxy: TcpProxy, service: Service) {
    this.agent = agent;
    this.nomad = nomad;
    this.proxy = proxy;
    this.service = service;
    this.client = new ServiceClient(service.url);
  }

  static async open(): Promise<Stage> {
    const agent = new Program(['agent', '--port', '0', '--driver', 'process']);
    const nomad = await agent.printed(/agent ready (http:\/\/\S+)/);
    const proxy = await TcpProxy.open(nomad);
    const service = createService(configFor(proxy.url), { log: new RecordingLogger() });
    await service.start();
    await eventually('the service to have read Nomad', () => service.ready);
    return new Stage(agent, nomad, proxy, service);
  }

  /** Ids of the runner jobs that Nomad has. */
  async runnerJobs(): Promise<string[]> {
    const rows = (await (await fetch(`${this.nomad}/v1/jobs`)).json()) as { ID: string }[];
    return rows.map(({ ID }) => ID).filter((id) => /^\d+-/.test(id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.destroy();
    await this.proxy[Symbol.asyncDispose]();
    this.agent.kill('SIGCONT');
    this.agent.kill('SIGTERM');
    await this.agent.ended();
  }
}

/** How a request was answered, in one line. Throws where that took too long. */
async function answerTo(what: string, work: Promise<Response>): Promise<string> {
  const since = performance.now();
  const response = await work;
  const { errorCode } = (response.ok ? {} : await response.json()) as { errorCode?: string };
  expect(performance.now() - since, what).to.be.lessThan(ANSWER_MS);
  const again = response.headers.has('retry-after') ? ', come again' : '';
  return `${response.status}${errorCode === undefined ? '' : ` ${errorCode}`}${again}`;
}

describe('while Nomad is away', function () {
  this.timeout(120_000);

  for (const absence of ABSENCES) {
    it(`(${absence.name}) all is answered within 5 s, nothing is done by half, and it all comes back`, async () => {
      await using stage = await Stage.open();
      const { client } = stage;
      await client.openPool(3);
      await client.openPool(1, 1);
      const [busy, used, returned] = [await client.claim(), await client.claim(), await client.claim()];
      await client.untilIdle(3);
      const program = await client.open(busy, 'echo begin; read line; echo "got $line"');
      await eventually('the program to run', () => program.text('stdout').includes('begin'));
      const session = await client.openSession(used);
      session.exec('0', 'echo kept > file');
      await session.end('0');

      await absence.begin(stage);
      const since = performance.now();
      const send = (method: string, path: string, body?: unknown): Promise<string> =>
        answerTo(`${method} ${path}`, client.send(method, path, body));
      const environment = { ...SHELL, prewarmingPoolSize: 4 };
      const copy = { copy: [{ path: 'new', content: 'aGk=' }] };
      const answers = await Promise.all([
        send('POST', '/runners', { executionEnvironmentId: 0 }),
        send('GET', `/runners/${used}/files?path=./`),
        send('GET', `/runners/${used}/files/raw?path=file`),
        send('PATCH', `/runners/${used}/files`, copy),
        send('PATCH', `/runners/${used}/files`, { delete: ['nothing'] }),
        send('DELETE', `/runners/${returned}`),
        send('GET', '/execution-environments?fetch=true'),
        send('PUT', '/execution-environments/0', environment),
        send('DELETE', '/execution-environments/1'),
      ]);
      expect(answers).to.deep.equal(answers.map(() => UNREACHABLE));
      const known = await Promise.all([
        send('GET', '/execution-environments'),
        send('GET', '/execution-environments/0'),
        send('GET', '/statistics/execution-environments'),
        send('GET', '/version'),
        send('DELETE', '/runners/0-00000000-0000-4000-8000-000000000000'),
      ]);
      expect(known).to.deep.equal(['200', '200', '200', '200', '410']);
      await Promise.all([
        ends(client.open(used, 'echo too early')),
        session.client.closeCode === undefined ? sessionEnds() : undefined,
      ]);
      await eventually('the health to tell', async () => (await send('GET', '/health')) === UNREACHABLE);
      if (!absence.breaksExecs) expect(performance.now() - since).to.be.greaterThan(ANSWER_MS);

      await absence.end(stage);
      await eventually('all to be well', async () => (await send('GET', '/health')) === '204', 30_000);
      expect(await send('DELETE', `/runners/${returned}`)).to.equal('204');
      expect(await send('DELETE', `/runners/${returned}`)).to.equal('410');
      const put = await send('PUT', '/execution-environments/0', environment);
      expect(put).to.equal('204');
      await client.untilIdle(4);
      expect(await client.statistics()).to.include({ idleRunners: 4, usedRunners: 2, pendingRunners: 0 });
      await eventually('environment 1 to go', async () => (await client.statistics(1)) === undefined);

      if (absence.breaksExecs) {
        await program.closed();
        expect(program.messages.at(-1)).to.include({ type: 'error' });
      } else {
        program.socket.send('on\n');
        await program.closed();
        expect(program.text('stdout')).to.include('got on');
        expect(program.messages.at(-1)).to.deep.equal({ type: 'exit', data: 0 });
      }
      for (const runner of [busy, used]) {
        const { messages } = await client.run(runner, 'echo here');
        expect(
          messages.map((message) => JSON.stringify(message)).join(' '),
          `${runner} of ${busy}`,
        ).to.include('here');
      }
      const content = await client.send('GET', `/runners/${used}/files/raw?path=file`);
      expect(await content.text()).to.equal('kept\n');
      const claimed = await Promise.all([1, 2, 3, 4].map(() => client.claim()));
      expect(new Set([busy, used, returned, ...claimed]).size).to.equal(7);
      await client.untilIdle(4);
      expect(await stage.runnerJobs()).to.have.length(4 + 2 + 4);

      async function ends(opening: Promise<SocketClient>): Promise<void> {
        const begun = performance.now();
        const socket = await opening;
        await socket.closed();
        expect(performance.now() - begun).to.be.lessThan(ANSWER_MS);
        expect(socket.messages.at(-1)).to.deep.equal({ type: 'error', data: 'Nomad cannot be reached' });
      }

      async function sessionEnds(): Promise<void> {
        const begun = performance.now();
        session.exec('1', 'echo too early');
        expect(await session.end('1')).to.include({ type: 'error', data: 'Nomad cannot be reached' });
        expect(performance.now() - begun).to.be.lessThan(ANSWER_MS);
      }
    });
  }
});
