import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Scope } from '../../lib/base/scope.js';
import { eventually } from '../support/waiting.js';
import { BenchClient } from './client.js';
import { SPECIFICATION } from './environment.js';
import { BenchProcess } from './process.js';
import { Relay } from './relay.js';

const PROGRAM = path.resolve(import.meta.dirname, '../../dist/main.js');
const PATIENCE_MS = 240_000;

export interface ScaleStackOptions {
  readonly environments: number;
  /** Idle runners of each. */
  readonly pool: number;
  readonly profiles: string | undefined;
  readonly logs: string | undefined;
}

/** The service from one start to its end. */
interface Life {
  readonly service: BenchProcess;
  readonly client: BenchClient;
  readonly scope: Scope;
}

/** What the statistics say of all environments together. */
export interface Totals {
  readonly idle: number;
  readonly used: number;
}

/**
 * Very many runners that exist in the memory of the agent alone, and one service that can be restarted. Sessions are off:
 * simulated runners have no shell that could hold one.
 */
export class ScaleStack implements AsyncDisposable {
  readonly options: ScaleStackOptions;
  readonly agent: BenchProcess;
  readonly relay: Relay;
  readonly #nomad: string;
  readonly #folder: string;
  readonly #scope: Scope;
  #life: Life | undefined;
  #starts = 0;

  private constructor(
    options: ScaleStackOptions,
    parts: Pick<ScaleStack, 'agent' | 'relay'> & { readonly nomad: string; readonly folder: string },
    scope: Scope,
  ) {
    this.options = options;
    this.agent = parts.agent;
    this.relay = parts.relay;
    this.#nomad = parts.nomad;
    this.#folder = parts.folder;
    this.#scope = scope;
  }

  /** Resolves once every pool is full. */
  static async open(options: ScaleStackOptions): Promise<ScaleStack> {
    const scope = new Scope();
    try {
      const folder = options.logs ?? (await mkdtemp(path.join(tmpdir(), 'serai-bench-')));
      if (options.logs === undefined) scope.defer(() => rm(folder, { recursive: true, force: true }));
      else await mkdir(folder, { recursive: true });
      const { profiles, pool, environments } = options;
      const args = [PROGRAM, 'agent', '--port', '0', '--driver', 'simulated'];
      const name = `scale-agent-${environments}x${pool}`;
      const agent = scope.use(new BenchProcess({ name, folder, profiles, args }));
      const nomad = await agent.printed(/agent ready (http:\/\/\S+) /);
      const relay = scope.use(await Relay.open(nomad));
      const stack = new ScaleStack(options, { agent, relay, nomad, folder }, scope);
      await stack.start();
      for (let id = 0; id < environments; id += 1) await stack.#put(id, pool);
      await stack.untilTotals({ idle: environments * pool, used: 0 });
      return stack;
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  get service(): BenchProcess {
    return this.#living.service;
  }

  get client(): BenchClient {
    return this.#living.client;
  }

  get #living(): Life {
    if (!this.#life) throw new Error('the service does not run');
    return this.#life;
  }

  /** Starts the service, over the relay if that is wanted, and resolves as soon as its process serves. */
  async start(over: 'agent' | 'relay' = 'agent'): Promise<void> {
    const { profiles, environments, pool } = this.options;
    this.#starts += 1;
    const scope = new Scope();
    const env = {
      ...{ SERAI_SERVER_PORT: '0', SERAI_LOG_LEVEL: 'info', SERAI_LOG_FORMAT: 'json' },
      ...{ SERAI_EXECUTION_WARM: 'off', BENCH_WATCH_LOOP: 'yes' },
      NOMAD_ADDR: over === 'relay' ? this.relay.url : this.#nomad,
    };
    const name = `scale-service-${environments}x${pool}-${this.#starts}`;
    const args = [PROGRAM, 'serve'];
    const service = scope.use(new BenchProcess({ name, folder: this.#folder, profiles, args, env }));
    this.#scope.defer(() => scope.close());
    const client = new BenchClient(await service.printed(/"url":"([^"]+)"/));
    scope.defer(() => client[Symbol.dispose]());
    this.#life = { service, client, scope };
  }

  async stop(): Promise<void> {
    await this.#living.scope.close();
    this.#life = undefined;
  }

  /** Undefined while the service has not read Nomad yet. */
  async totals(): Promise<Totals | undefined> {
    const answer = await this.client.send('GET', '/statistics/execution-environments');
    if (answer.status !== 200) return undefined;
    const entries = JSON.parse(answer.body.toString()) as Record<
      string,
      { idleRunners: number; usedRunners: number }
    >;
    let [idle, used] = [0, 0];
    for (const { idleRunners, usedRunners } of Object.values(entries)) {
      idle += idleRunners;
      used += usedRunners;
    }
    return { idle, used };
  }

  /** Without `used`, any number of them will do. */
  untilTotals({ idle, used }: { readonly idle: number; readonly used?: number }): Promise<void> {
    return eventually(
      `${idle} idle and ${used ?? 'any'} used runners`,
      async () => {
        const now = await this.totals();
        return now?.idle === idle && now.used === (used ?? now.used);
      },
      PATIENCE_MS,
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close();
  }

  async #put(id: number, prewarmingPoolSize: number): Promise<void> {
    const body = { ...SPECIFICATION, prewarmingPoolSize, exposedPorts: null };
    await eventually(
      `environment ${id}`,
      async () => (await this.client.send('PUT', `/execution-environments/${id}`, body)).status < 300,
    );
  }
}
