import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Scope } from '../../lib/base/scope.js';
import { eventually } from '../support/waiting.js';
import { BenchClient } from './client.js';
import { SPECIFICATION } from './environment.js';
import { BenchProcess } from './process.js';

const PROGRAM = path.resolve(import.meta.dirname, '../../dist/main.js');
const FLOOR = path.resolve(import.meta.dirname, 'floor.ts');
const PATIENCE_MS = 180_000;

export type PartyName = 'warm' | 'cold' | 'floor';

/** Something with the API of the service that figures are measured of. */
export interface Party {
  readonly name: PartyName;
  readonly url: string;
  readonly client: BenchClient;
  readonly process: BenchProcess;
}

export interface StackOptions {
  /** Flags of the agent, such as `--exec-delay 60ms`. */
  readonly agent: readonly string[];
  readonly pool: number;
  /** Longer than a pool stands still while an exec or a task is being opened. */
  readonly quietMs: number;
  /** Folder for processor profiles, if they are wanted. */
  readonly profiles: string | undefined;
  /** Folder for logs that are to stay, if they are. */
  readonly logs: string | undefined;
}

/** A service on the agent, with environment 0 and a pool of it. */
export class ServiceParty implements Party {
  readonly name: 'warm' | 'cold';
  readonly url: string;
  readonly client: BenchClient;
  readonly process: BenchProcess;
  #pool = 0;

  constructor({ name, url, client, process }: Party & { readonly name: 'warm' | 'cold' }) {
    this.name = name;
    this.url = url;
    this.client = client;
    this.process = process;
  }

  /** Sets the size of the pool, and waits for nothing. */
  async resize(pool: number): Promise<void> {
    this.#pool = pool;
    await this.client.request('PUT', '/execution-environments/0', {
      ...SPECIFICATION,
      prewarmingPoolSize: pool,
      exposedPorts: null,
    });
  }

  /** Resolves once the pool has its size. */
  untilFull(): Promise<void> {
    return eventually(
      `${this.#pool} idle runners`,
      async () => {
        const answer = await this.client.request('GET', '/statistics/execution-environments');
        const statistics = JSON.parse(answer.toString()) as Record<string, { idleRunners: number }>;
        return statistics['0']?.idleRunners === this.#pool;
      },
      PATIENCE_MS,
    );
  }
}

/**
 * What is measured, each a process of its own: one agent, on it one service that keeps sessions ready and one that opens
 * each when it is asked for, and the floor (floor.ts).
 */
export class Stack implements AsyncDisposable {
  readonly pool: number;
  readonly agent: BenchProcess;
  readonly driver: string;
  readonly warm: ServiceParty;
  readonly cold: ServiceParty;
  readonly floor: Party;
  readonly #nomad: string;
  readonly #quietMs: number;
  readonly #scope: Scope;

  private constructor(parts: Parts, scope: Scope) {
    this.pool = parts.pool;
    this.agent = parts.agent;
    this.driver = parts.driver;
    this.warm = parts.warm;
    this.cold = parts.cold;
    this.floor = parts.floor;
    this.#nomad = parts.nomad;
    this.#quietMs = parts.quietMs;
    this.#scope = scope;
  }

  static async open(options: StackOptions): Promise<Stack> {
    const scope = new Scope();
    try {
      const stack = new Stack(await openParts(options, scope), scope);
      await stack.settled();
      return stack;
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  get services(): readonly ServiceParty[] {
    return [this.warm, this.cold];
  }

  get parties(): readonly Party[] {
    return [this.warm, this.cold, this.floor];
  }

  /** Exec sockets that the agent has open. */
  async openExecs(): Promise<number> {
    const answer = await fetch(`${this.#nomad}/v1/agent/self`);
    return ((await answer.json()) as { embedded: { openExecs: number } }).embedded.openExecs;
  }

  /** Resolves once both pools are full and no exec is being opened or ended: nothing goes on in the background. */
  async settled(): Promise<void> {
    await Promise.all(this.services.map((service) => service.untilFull()));
    let [count, sinceMs] = [-1, 0];
    await eventually(
      'the execs to stay as they are',
      async () => {
        const now = await this.openExecs();
        if (now !== count) [count, sinceMs] = [now, performance.now()];
        return performance.now() - sinceMs >= this.#quietMs;
      },
      PATIENCE_MS,
    );
  }

  /**
   * Runs `work` on that many claimed runners while nothing goes on in the background, and brings the pool back to its size
   * afterwards.
   */
  async withRunners<T>(party: Party, count: number, work: (runners: string[]) => Promise<T>): Promise<T> {
    const service = this.services.find(({ name }) => name === party.name);
    await service?.resize(Math.max(count, this.pool));
    await this.settled();
    const runners = await Promise.all(Array.from({ length: count }, () => party.client.claim()));
    await service?.resize(this.pool);
    await this.settled();
    try {
      return await work(runners);
    } finally {
      await Promise.all(runners.map((runner) => party.client.release(runner)));
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close();
  }
}

type Parts = Pick<Stack, 'pool' | 'agent' | 'driver' | 'warm' | 'cold' | 'floor'> & {
  readonly nomad: string;
  readonly quietMs: number;
};

async function openParts(
  { agent: flags, pool, quietMs, profiles, logs }: StackOptions,
  scope: Scope,
): Promise<Parts> {
  const folder = logs ?? (await mkdtemp(path.join(tmpdir(), 'serai-bench-')));
  if (logs === undefined) scope.defer(() => rm(folder, { recursive: true, force: true }));
  else await mkdir(folder, { recursive: true });
  const start = (
    name: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): BenchProcess => scope.use(new BenchProcess({ name, folder, profiles, args, env }));
  const logging = { SERAI_SERVER_PORT: '0', SERAI_LOG_LEVEL: 'info', SERAI_LOG_FORMAT: 'json' };

  const namespaces = ['--namespace', 'warm', '--namespace', 'cold'];
  const agent = start('agent', [PROGRAM, 'agent', '--port', '0', ...namespaces, ...flags], {});
  const said = await agent.printed(/agent ready (http:\/\/\S+ driver=\S+)/);
  const [nomad = '', driver = ''] = said.split(' driver=');

  const party = async <N extends PartyName>(
    name: N,
    process: BenchProcess,
  ): Promise<Party & { readonly name: N }> => {
    const url = await process.printed(/"url":"([^"]+)"/);
    const client = new BenchClient(url);
    scope.defer(() => client[Symbol.dispose]());
    return { name, url, client, process };
  };
  const service = async (name: 'warm' | 'cold'): Promise<ServiceParty> => {
    const env = {
      ...logging,
      NOMAD_ADDR: nomad,
      NOMAD_NAMESPACE: name,
      SERAI_EXECUTION_WARM: name === 'warm' ? 'on' : 'off',
    };
    const opened = new ServiceParty(await party(name, start(name, [PROGRAM, 'serve'], env)));
    await eventually(
      'the service',
      async () => (await opened.client.send('GET', '/health')).status < 500,
      PATIENCE_MS,
    );
    await opened.resize(pool);
    return opened;
  };
  const floor = await party('floor', start('floor', ['--import', 'tsx', FLOOR], logging));
  const [warm, cold] = await Promise.all([service('warm'), service('cold')]);
  return { pool, quietMs, agent, driver, nomad, warm, cold, floor };
}
