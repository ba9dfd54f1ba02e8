import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Scope } from '../../lib/base/scope.js';
import { BenchProcess } from '../bench/process.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { freePort } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

const PROGRAM = path.resolve(import.meta.dirname, '../../lib/main.ts');
const ENV = { SERAI_LOG_LEVEL: 'info', SERAI_LOG_FORMAT: 'json', SERAI_SHUTDOWN_GRACE_SECONDS: '0' };

/** One of the services: a process that is killed and started again under the same name, and its own way to Nomad. */
export class ChaosReplica {
  readonly name: string;
  readonly url: string;
  readonly proxy: TcpProxy;
  /** Wall times in which it was frozen or gone. */
  readonly absences: { fromMs: number; toMs: number }[] = [];
  readonly #start: (boot: number) => BenchProcess;
  #process: BenchProcess;
  #boot = 0;
  /** Live heap a moment after its start. */
  #heapAtStart = 0;

  constructor(parts: {
    readonly name: string;
    readonly url: string;
    readonly proxy: TcpProxy;
    readonly start: (boot: number) => BenchProcess;
  }) {
    this.name = parts.name;
    this.url = parts.url;
    this.proxy = parts.proxy;
    this.#start = parts.start;
    this.#process = parts.start(0);
  }

  /** Resolves once it listens. */
  async untilServing(): Promise<void> {
    await this.#process.printed(/"message":"(serving)"/);
    this.#heapAtStart = (await this.#process.settledUsage()).heapBytes;
  }

  /** Bytes that live in it now beyond those that lived at its start. */
  async growth(): Promise<number> {
    return (await this.#process.settledUsage()).heapBytes - this.#heapAtStart;
  }

  /** Whether it was there for all of the time since then. */
  wasThereSince(fromMs: number): boolean {
    return !this.absences.some(({ toMs }) => toMs >= fromMs);
  }

  async freeze(work: () => Promise<void>): Promise<void> {
    await this.#absent(async () => {
      process.kill(this.#process.pid, 'SIGSTOP');
      try {
        await work();
      } finally {
        process.kill(this.#process.pid, 'SIGCONT');
      }
    });
  }

  /** `kill -9`, and a start after `work`. */
  async kill(work: () => Promise<void>): Promise<void> {
    await this.#absent(async () => {
      process.kill(this.#process.pid, 'SIGKILL');
      await this.#process[Symbol.asyncDispose]();
      await work();
      this.#boot += 1;
      this.#process = this.#start(this.#boot);
      await this.untilServing();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    await this.proxy[Symbol.asyncDispose]();
  }

  async #absent(work: () => Promise<void>): Promise<void> {
    const absence = { fromMs: performance.now(), toMs: Infinity };
    this.absences.push(absence);
    try {
      await work();
    } finally {
      absence.toMs = performance.now();
    }
  }
}

/** An agent and the services on it, each a process of its own that ends with this one. */
export class ChaosStack implements AsyncDisposable {
  readonly nomad: string;
  readonly agent: BenchProcess;
  readonly replicas: readonly [ChaosReplica, ...ChaosReplica[]];
  /** Where the processes write their logs. */
  readonly folder: string;
  readonly #scope: Scope;

  private constructor(parts: {
    readonly nomad: string;
    readonly agent: BenchProcess;
    readonly replicas: readonly [ChaosReplica, ...ChaosReplica[]];
    readonly folder: string;
    readonly scope: Scope;
  }) {
    this.nomad = parts.nomad;
    this.agent = parts.agent;
    this.replicas = parts.replicas;
    this.folder = parts.folder;
    this.#scope = parts.scope;
  }

  static async open(keepLogs: boolean): Promise<ChaosStack> {
    const scope = new Scope();
    try {
      const folder = await mkdtemp(path.join(tmpdir(), 'serai-chaos-'));
      if (!keepLogs) scope.defer(() => rm(folder, { recursive: true, force: true }));
      const run = (name: string, args: readonly string[], env: Readonly<Record<string, string>>) =>
        new BenchProcess({ name, folder, profiles: undefined, args: ['--import', 'tsx', ...args], env });
      const flags = ['--port', '0', '--driver', 'process', '--die-with-parent'];
      const agent = scope.use(run('agent', [PROGRAM, 'agent', ...flags], {}));
      const nomad = await agent.printed(/agent ready (http:\/\/\S+)/);
      // Runners share /tmp here, and a replica sweeps away what another process of its name has left there.
      const ownName = randomUUID().slice(0, 8);
      const open = async (name: string): Promise<ChaosReplica> => {
        const port = String(await freePort());
        const proxy = await TcpProxy.open(nomad);
        const env = {
          ...ENV,
          NOMAD_ADDR: proxy.url,
          SERAI_SERVER_PORT: port,
          SERAI_CLUSTER_SECRET: 'the-secret-of-the-replicas',
          SERAI_CLUSTER_REPLICA: `${name}_${ownName}`,
        };
        const start = (boot: number) => run(`${name}-${boot}`, [PROGRAM, 'serve'], env);
        return scope.use(new ChaosReplica({ name, url: `http://127.0.0.1:${port}`, proxy, start }));
      };
      const replicas = [await open('alpha'), await open('beta')] as const;
      await Promise.all(replicas.map((replica) => replica.untilServing()));
      return new ChaosStack({ nomad, agent, replicas, folder, scope });
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  /** Asks the agent; undefined where it does not answer just now. */
  async ask<T>(method: string, route: string, body?: object): Promise<T | undefined> {
    try {
      const signal = AbortSignal.timeout(2_000);
      const init = { method, signal, ...(body && { body: JSON.stringify(body) }) };
      const response = await fetch(`${this.nomad}/v1/${route}`, init);
      const text = await response.text();
      return response.ok ? (JSON.parse(text || '{}') as T) : undefined;
    } catch {
      return undefined; // out of order, as it was made to be
    }
  }

  /** Ids of the jobs of runners. */
  async runnerJobs(): Promise<string[]> {
    const rows = (await this.ask<{ ID: string }[]>('GET', 'jobs')) ?? [];
    return rows.map(({ ID }) => ID).filter((id) => /^\d+-/.test(id));
  }

  /** Resolves once every replica reports what `isWell` asks for; rejects with what they report instead. */
  async settled(isWell: (of: Statistics) => boolean, timeoutMs: number): Promise<void> {
    let all: (Statistics | undefined)[] = [];
    const look = async (): Promise<boolean> => {
      all = await Promise.all(this.replicas.map((replica) => statisticsOf(replica)));
      return all.every((one) => one !== undefined && isWell(one));
    };
    await eventually('the pools', look, timeoutMs).catch((error: unknown) => {
      throw new Error(`the replicas report ${JSON.stringify(all)}`, { cause: error });
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close();
  }
}

export type Statistics = Readonly<
  Record<
    string,
    { readonly idleRunners: number; readonly usedRunners: number; readonly prewarmingPoolSize: number }
  >
>;

export async function statisticsOf({ url }: ChaosReplica): Promise<Statistics | undefined> {
  try {
    const signal = AbortSignal.timeout(2_000);
    const response = await fetch(`${url}/api/v1/statistics/execution-environments`, { signal });
    return response.ok ? ((await response.json()) as Statistics) : undefined;
  } catch {
    return undefined; // it cannot answer just now
  }
}
