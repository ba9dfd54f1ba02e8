import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import WebSocket from 'ws';
import { DevAgent } from '../../../lib/dev-agent/agent.js';
import type { DevAgentOptions } from '../../../lib/dev-agent/agent.js';
import { eventually } from '../../support/waiting.js';
import type { AllocationJson, RegisterJson, JobJson, EventJson, LineJson, FrameJson } from './agent-json.js';

/**
 * The agent spoken to with nothing but fetch and ws, so that no code of the service's client stands between.
 */
export interface Answer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** The agent at an address. */
export class AgentClient {
  readonly #address: string | undefined;

  constructor(address?: string) {
    this.#address = address;
  }

  get address(): string {
    return this.#address ?? '';
  }

  /** Sends a body as it is when it is text, else as JSON. */
  async request<T = unknown>(method: string, where: string, body?: unknown): Promise<Answer<T>> {
    const response = await fetch(this.address + where, {
      method,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    const parsed = (isJson ? JSON.parse(text) : text) as T;
    return { status: response.status, headers: response.headers, body: parsed };
  }

  async get<T>(where: string): Promise<T> {
    return (await this.request<T>('GET', where)).body;
  }

  async register(job: unknown, more: object = {}): Promise<RegisterJson> {
    return (await this.request<RegisterJson>('PUT', '/v1/jobs', { Job: job, ...more })).body;
  }

  purge(jobId: string): Promise<Answer<RegisterJson>> {
    return this.request('DELETE', `/v1/job/${jobId}?purge=true`);
  }

  allocations(jobId: string): Promise<AllocationJson[]> {
    return this.get(`/v1/job/${jobId}/allocations`);
  }

  /** The newest allocation of a job once it has this client status. */
  async allocation(jobId: string, status = 'running'): Promise<AllocationJson> {
    for (;;) {
      let newest: AllocationJson | undefined;
      await eventually(`an allocation of ${jobId} to be ${status}`, async () => {
        newest = (await this.allocations(jobId)).sort((a, b) => b.CreateIndex - a.CreateIndex)[0];
        return newest?.ClientStatus === status;
      });
      if (newest) return newest;
    }
  }

  /** Registers a job and waits until its allocation runs; returns the id of that. */
  async run(job: { ID: string }): Promise<string> {
    await this.register(job);
    return (await this.allocation(job.ID)).ID;
  }

  exec(allocationId: string, command: readonly string[], options: ExecOptions = {}): RawExec {
    const { tty = false, task = 'default-task', query = '' } = options;
    const words = encodeURIComponent(JSON.stringify(command));
    return this.execPath(
      `/v1/client/allocation/${allocationId}/exec?command=${words}&task=${task}&tty=${tty}${query}`,
    );
  }

  execPath(where: string): RawExec {
    return new RawExec(this.address.replace('http', 'ws') + where);
  }

  /** Runs a command whose input is closed at once, and gives all that came of it. */
  async output(
    allocationId: string,
    command: readonly string[],
    options: ExecOptions = {},
  ): Promise<RawExec> {
    const exec = this.exec(allocationId, command, options);
    await exec.opened;
    if (!options.tty) exec.send({ stdin: { close: true } });
    await exec.closed;
    return exec;
  }

  async events(query = ''): Promise<RawStream> {
    const stream = new RawStream();
    await stream.open(`${this.address}/v1/event/stream${query}`);
    return stream;
  }
}

/** An agent of this process. */
export class RawAgent extends AgentClient {
  readonly agent: DevAgent;

  constructor(options: Partial<DevAgentOptions> = {}) {
    super();
    this.agent = new DevAgent({ driver: 'process', ...options });
  }

  static async start(options: Partial<DevAgentOptions> = {}): Promise<RawAgent> {
    const raw = new RawAgent(options);
    await raw.agent.start();
    return raw;
  }

  override get address(): string {
    return this.agent.address;
  }

  stop(): Promise<void> {
    return this.agent.stop();
  }
}

interface ExecOptions {
  readonly tty?: boolean;
  readonly task?: string;
  readonly query?: string;
}

/** One exec socket and everything that came over it. */
export class RawExec {
  readonly frames: FrameJson[] = [];
  readonly opened: Promise<unknown>;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly socket: WebSocket;
  isClosed = false;

  constructor(url: string) {
    this.socket = new WebSocket(url);
    this.opened = once(this.socket, 'open');
    this.opened.catch(() => undefined);
    this.socket.on('error', () => undefined);
    this.socket.on('message', (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()) as FrameJson);
    });
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => {
        this.isClosed = true;
        resolve({ code, reason: reason.toString() });
      });
    });
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  type(text: string): void {
    this.send({ stdin: { data: Buffer.from(text).toString('base64') } });
  }

  bytes(stream: 'stdout' | 'stderr'): Buffer {
    return Buffer.concat(this.frames.map((frame) => Buffer.from(frame[stream]?.data ?? '', 'base64')));
  }

  get stdout(): string {
    return this.bytes('stdout').toString();
  }

  /** Undefined without an exit frame; a missing code is 0. */
  get exitCode(): number | undefined {
    const exit = this.frames.find((frame) => frame.exited);
    return exit && (exit.result?.exit_code ?? 0);
  }

  async until(text: string): Promise<void> {
    await eventually(`the output ${JSON.stringify(text)}`, () => this.stdout.includes(text));
  }
}

/** The event stream, line by line. */
export class RawStream {
  readonly lines: LineJson[] = [];
  status = 0;
  ended: Promise<void> = Promise.resolve();
  readonly #abort = new AbortController();

  async open(url: string): Promise<void> {
    const response = await fetch(url, { signal: this.#abort.signal });
    this.status = response.status;
    if (response.body) this.ended = this.#read(response.body).catch(() => undefined);
  }

  close(): Promise<void> {
    this.#abort.abort();
    return this.ended;
  }

  get events(): EventJson[] {
    return this.lines.flatMap((line) => line.Events ?? []);
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split('\n');
      text = parts.pop() ?? '';
      for (const part of parts) this.lines.push(JSON.parse(part) as LineJson);
    }
  }
}

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/nomad');

export function fixture<T>(name: string): T {
  return JSON.parse(readFileSync(path.join(fixtures, `${name}.json`), 'utf8')) as T;
}

/** The lines of a recorded event stream, heartbeats left out. */
export function recordedLines(name: string): LineJson[] {
  return readFileSync(path.join(fixtures, 'events', `${name}.ndjson`), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && line !== '{}')
    .map((line) => JSON.parse(line) as LineJson);
}

/** A job as the service registers it, small enough to be placed often. */
export function runnerJob(
  id: string,
  config: { command: string; args?: string[] },
  more: object = {},
): JobJson {
  return {
    ID: id,
    Name: id,
    Type: 'batch',
    Datacenters: ['dc1'],
    TaskGroups: [
      {
        Name: 'default-group',
        Count: 1,
        RestartPolicy: { Attempts: 0, Mode: 'fail', Interval: 3600e9, Delay: 1e9 },
        ReschedulePolicy: { Attempts: 0, Unlimited: false },
        Tasks: [
          {
            Name: 'default-task',
            Driver: 'raw_exec',
            Config: config,
            Resources: { CPU: 10, MemoryMB: 10 },
          },
        ],
        ...more,
      },
    ],
  };
}

export function sleeper(id: string, more: object = {}): JobJson {
  return runnerJob(id, { command: 'sleep', args: ['infinity'] }, more);
}
