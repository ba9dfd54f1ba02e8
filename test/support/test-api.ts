import { FakeFiles } from './fake-files.js';
import { systemClock } from '../../lib/base/clock.js';
import type { Clock } from '../../lib/base/clock.js';
import { replicaId, systemRandomness } from '../../lib/base/ids.js';
import { environmentId } from '../../lib/base/ids.js';
import type { LogFields, Logger } from '../../lib/base/log.js';
import type { ApiServerDeps } from '../../lib/api/server.js';
import { ApiServer } from '../../lib/api/server.js';
import type { Cluster } from '../../lib/cluster/api.js';
import { Standalone } from '../../lib/cluster/standalone.js';
import { loadConfig } from '../../lib/config/load.js';
import { createEnvironment } from '../../lib/environments/environment.js';
import { FakeExecutions, FakeRunners } from './api-fakes.js';
import type { Contract } from './contract.js';
import { contractOf } from './contract.js';
import { SessionClient } from './session-client.js';
import type { OpenOptions } from './websocket-client.js';

/** A logger that keeps its lines. */
export class RecordingLogger implements Logger {
  readonly lines: { level: string; message: string; fields: LogFields }[];
  readonly #fields: LogFields;

  constructor(lines: RecordingLogger['lines'] = [], fields: LogFields = {}) {
    this.lines = lines;
    this.#fields = fields;
  }

  debug = (message: string, fields?: LogFields): void => this.#add('debug', message, fields);
  info = (message: string, fields?: LogFields): void => this.#add('info', message, fields);
  warn = (message: string, fields?: LogFields): void => this.#add('warn', message, fields);
  error = (message: string, fields?: LogFields): void => this.#add('error', message, fields);

  child(fields: LogFields): Logger {
    return new RecordingLogger(this.lines, { ...this.#fields, ...fields });
  }

  #add(level: string, message: string, fields: LogFields = {}): void {
    this.lines.push({ level, message, fields: { ...this.#fields, ...fields } });
  }
}

export interface TestApiOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly graceMs?: number;
  /** Without it the service is alone. */
  readonly cluster?: Cluster;
}

/** The API on fakes, listening on a free port, with environment 1 known. */
export class TestApi implements AsyncDisposable {
  readonly runners = new FakeRunners();
  readonly executions = new FakeExecutions();
  readonly files = new FakeFiles();
  readonly log = new RecordingLogger();
  readonly server: ApiServer;
  readonly deps: ApiServerDeps;
  readonly #token: string | undefined;
  readonly #contract: Contract;

  private constructor({ settings = {}, clock = systemClock, graceMs = 0, cluster }: TestApiOptions) {
    const { config } = loadConfig({ env: { SERAI_SERVER_PORT: '0', ...settings }, cwd: '/' });
    this.#token = config.auth.token;
    this.#contract = contractOf({ peerStatuses: config.api.peerStatuses });
    const id = environmentId(1);
    this.runners.known.set(
      id,
      createEnvironment({
        id,
        image: 'image',
        prewarmingPoolSize: 2,
        cpuLimit: 20,
        memoryLimit: 100,
        networkAccess: false,
        exposedPorts: [],
        name: undefined,
        user: undefined,
        environment: {},
      }),
    );
    this.deps = {
      cluster: cluster ?? new Standalone({ id: replicaId('test'), address: 'http://127.0.0.1:1' }),
      runners: this.runners,
      executions: this.executions,
      files: this.files,
      config,
      version: '1.2.3',
      log: this.log,
      clock,
      randomness: systemRandomness,
      graceMs,
    };
    this.server = new ApiServer(this.deps);
  }

  /** Not listening yet. */
  static create(options: TestApiOptions = {}): TestApi {
    return new TestApi(options);
  }

  static async open(options: TestApiOptions = {}): Promise<TestApi> {
    const api = TestApi.create(options);
    await api.server.start();
    return api;
  }

  get base(): string {
    return `${this.server.url}/api/v1`;
  }

  /** Sends one request; a body that is no text is sent as JSON. Throws where the answer is not in the OpenAPI document. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(this.base + path, {
      method,
      headers: {
        connection: 'close',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.#token === undefined ? {} : { 'poseidon-token': this.#token }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const { status, headers: answered, url } = response;
    this.#contract.check({ method, url, status, headers: answered, body: text });
    const isJson = answered.get('content-type')?.startsWith('application/json') === true && text !== '';
    const json: unknown = isJson ? JSON.parse(text) : undefined;
    return { status, headers: answered, text, json };
  }

  /** Claims a runner and prepares an execution on it. */
  async prepare(): Promise<{ runnerId: string; url: string }> {
    const claim = await this.send('POST', '/runners', { executionEnvironmentId: 1 });
    const { runnerId } = claim.json as { runnerId: string };
    return { runnerId, url: await this.prepareOn(runnerId) };
  }

  /** Prepares an execution on a claimed runner and resolves with the address of its socket. */
  async prepareOn(runnerId: string): Promise<string> {
    const prepared = await this.send('POST', `/runners/${runnerId}/execute`, { command: 'true' });
    return (prepared.json as { websocketUrl: string }).websocketUrl;
  }

  /** Claims a runner and opens a session on it. */
  async openSession(options: OpenOptions = {}): Promise<SessionClient> {
    const claim = await this.send('POST', '/runners', { executionEnvironmentId: 1 });
    const { runnerId } = claim.json as { runnerId: string };
    return SessionClient.open(this.base, runnerId, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}
