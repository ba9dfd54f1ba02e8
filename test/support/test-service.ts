import { createServer } from 'node:net';
import { once } from 'node:events';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import type { TaskDriver } from '../../lib/dev-agent/driver.js';
import type { DriverName } from '../../lib/dev-agent/drivers.js';
import { loadConfig } from '../../lib/config/load.js';
import type {
  ClaimAnswer,
  EnvironmentStatistics,
  ExecuteAnswer,
  ExecuteBody,
  StatisticsAnswer,
} from '../../lib/protocol/http.js';
import type { Service } from '../../lib/service.js';
import { createService } from '../../lib/service.js';
import { contractOf } from './contract.js';
import { SessionClient } from './session-client.js';
import { RecordingLogger } from './test-api.js';
import { eventually } from './waiting.js';
import type { OpenOptions } from './websocket-client.js';
import { SocketClient } from './websocket-client.js';

export const SHELL = {
  image: 'none',
  prewarmingPoolSize: 2,
  cpuLimit: 20,
  memoryLimit: 64,
  networkAccess: false,
  exposedPorts: null,
};

const contract = contractOf();

/** A client of a service, in this process or another. */
export class ServiceClient {
  readonly base: string;
  /** Headers of every request, upgrades included. */
  readonly credentials: Record<string, string>;

  constructor(url: string, token?: string) {
    this.base = `${url}/api/v1`;
    this.credentials = token === undefined ? {} : { 'poseidon-token': token };
  }

  /** Sends one request. Rejects where the answer is not in the OpenAPI document. */
  async send(method: string, path: string, body?: unknown): Promise<Response> {
    const response = await fetch(this.base + path, {
      method,
      headers: { connection: 'close', 'content-type': 'application/json', ...this.credentials },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { status, headers, url } = response;
    contract.check({ method, url, status, headers, body: await response.clone().text() });
    return response;
  }

  /** Registers an environment and waits for its pool. */
  async openPool(size: number, environment = 0): Promise<void> {
    const { status } = await this.send('PUT', `/execution-environments/${environment}`, {
      ...SHELL,
      prewarmingPoolSize: size,
    });
    if (status !== 201 && status !== 204) throw new Error(`the environment was answered with ${status}`);
    await this.untilIdle(size, environment);
  }

  async statistics(environment = 0): Promise<EnvironmentStatistics | undefined> {
    const response = await this.send('GET', '/statistics/execution-environments');
    if (!response.ok) return undefined;
    return ((await response.json()) as StatisticsAnswer)[environment];
  }

  async untilIdle(count: number, environment = 0): Promise<void> {
    await eventually(
      `${count} idle runners`,
      async () => (await this.statistics(environment))?.idleRunners === count,
      30_000,
    );
  }

  async claim(environment = 0, inactivityTimeout = 0): Promise<string> {
    const response = await this.send('POST', '/runners', {
      executionEnvironmentId: environment,
      inactivityTimeout,
    });
    if (!response.ok) throw new Error(`the claim was answered with ${response.status}`);
    return ((await response.json()) as ClaimAnswer).runnerId;
  }

  /** Prepares a command and resolves with the address of its socket. */
  async prepare(runnerId: string, command: string, body: Partial<ExecuteBody> = {}): Promise<string> {
    const request: ExecuteBody = { command, timeLimit: 60, ...body };
    const response = await this.send('POST', `/runners/${runnerId}/execute`, request);
    if (!response.ok)
      throw new Error(`execute was answered with ${response.status}: ${await response.text()}`);
    return ((await response.json()) as ExecuteAnswer).websocketUrl;
  }

  /** Opens the socket of a command. */
  async open(
    runnerId: string,
    command: string,
    body: Partial<ExecuteBody> = {},
    options: OpenOptions = {},
  ): Promise<SocketClient> {
    const url = await this.prepare(runnerId, command, body);
    return SocketClient.open(url, { headers: this.credentials, ...options });
  }

  /** Opens a session on a claimed runner. */
  openSession(runnerId: string): Promise<SessionClient> {
    return SessionClient.open(this.base, runnerId, { headers: this.credentials });
  }

  /** Runs a command to its end and resolves with all that came. */
  async run(runnerId: string, command: string, body: Partial<ExecuteBody> = {}): Promise<SocketClient> {
    const client = await this.open(runnerId, command, body);
    await client.closed();
    return client;
  }
}

/** The service on an embedded agent, both in this process. */
export class TestService implements AsyncDisposable {
  readonly agent: DevAgent;
  readonly service: Service;
  readonly log: RecordingLogger;
  readonly client: ServiceClient;

  private constructor(agent: DevAgent, service: Service, log: RecordingLogger, token: string | undefined) {
    this.agent = agent;
    this.service = service;
    this.log = log;
    this.client = new ServiceClient(service.url, token);
  }

  static async open(
    settings: Readonly<Record<string, string>> = {},
    driver: DriverName | TaskDriver = 'process',
  ): Promise<TestService> {
    const agent = new DevAgent({ driver });
    await agent.start();
    const log = new RecordingLogger();
    const service = createService(configFor(agent.address, settings), { log });
    await service.start();
    const opened = new TestService(agent, service, log, settings['SERAI_AUTH_TOKEN']);
    await eventually('the service to have read Nomad', () => service.ready);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.destroy();
    await this.agent.stop();
  }
}

export function configFor(nomadAddress: string, settings: Readonly<Record<string, string>> = {}) {
  const env = {
    NOMAD_ADDR: nomadAddress,
    SERAI_SERVER_PORT: '0',
    SERAI_SHUTDOWN_GRACE_SECONDS: '0',
    ...settings,
  };
  return loadConfig({ env, cwd: '/' }).config;
}

/** A port of the loopback address that nobody has now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
