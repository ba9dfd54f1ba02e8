import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '../support/waiting.js';

const program = path.resolve(import.meta.dirname, '../../dist/main.js');

/** A process of the built program, and what it costs. */
export class BenchProcess implements AsyncDisposable {
  readonly #child: ReturnType<typeof BenchProcess.spawn>;
  #output = '';

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#child = BenchProcess.spawn(args, env);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => (this.#output = (this.#output + text).slice(-100_000)));
    }
  }

  static spawn(args: readonly string[], env: Readonly<Record<string, string>>) {
    return spawn(process.execPath, [program, ...args], {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  }

  /** The first group of `pattern` in what it printed. */
  async printed(pattern: RegExp): Promise<string> {
    await eventually(`${pattern} in ${this.#output}`, () => pattern.test(this.#output), 60_000);
    return pattern.exec(this.#output)?.[1] ?? '';
  }

  /** Resident memory in bytes (Linux). */
  get memoryBytes(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'))?.[1]) * 1024;
  }

  /** Processor time used so far, in milliseconds (Linux, 100 ticks a second). */
  get cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(late);
  }
}

export interface StackOptions {
  /** Flags of the agent, such as `--exec-delay 60ms`. */
  readonly agent: readonly string[];
  readonly pool: number;
}

/** Agent and service as processes of their own, with one environment and a full pool. */
export class Stack implements AsyncDisposable {
  readonly agent: BenchProcess;
  readonly service: BenchProcess;
  readonly driver: string;
  readonly url: string;

  private constructor(agent: BenchProcess, service: BenchProcess, driver: string, url: string) {
    this.agent = agent;
    this.service = service;
    this.driver = driver;
    this.url = url;
  }

  static async open({ agent: flags, pool }: StackOptions): Promise<Stack> {
    const agent = new BenchProcess(['agent', '--port', '0', '--die-with-parent', ...flags]);
    const [address = '', driver = ''] = (await agent.printed(/agent ready (http:\/\/\S+ driver=\S+)/)).split(
      ' driver=',
    );
    const service = new BenchProcess(['serve', '--port', '0'], {
      NOMAD_ADDR: address,
      SERAI_LOG_LEVEL: 'info',
      SERAI_LOG_FORMAT: 'json',
    });
    const url = await service.printed(/(http:\/\/127\.0\.0\.1:\d+)/);
    const stack = new Stack(agent, service, driver, url);
    await eventually('the service', async () => (await fetch(`${url}/api/v1/health`)).ok, 60_000);
    await stack.fill(pool);
    return stack;
  }

  /** Registers environment 0 with a pool of this size and waits until it is full. */
  async fill(pool: number): Promise<void> {
    const answer = await fetch(`${this.url}/api/v1/execution-environments/0`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        image: 'bench',
        prewarmingPoolSize: pool,
        cpuLimit: 20,
        memoryLimit: 64,
        networkAccess: false,
        exposedPorts: null,
      }),
    });
    if (!answer.ok)
      throw new Error(`the environment was answered with ${answer.status}: ${await answer.text()}`);
    await this.untilIdle(pool);
  }

  async untilIdle(count: number): Promise<void> {
    await eventually(
      `${count} idle runners`,
      async () => {
        const answer = await fetch(`${this.url}/api/v1/statistics/execution-environments`);
        const statistics = (await answer.json()) as Record<string, { idleRunners: number }>;
        return (statistics['0']?.idleRunners ?? 0) >= count;
      },
      120_000,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.agent[Symbol.asyncDispose]();
  }
}
