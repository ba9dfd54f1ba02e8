import { randomUUID } from 'node:crypto';
import { DevAgent } from '../../lib/dev-agent/agent.js';
import type { TaskDriver } from '../../lib/dev-agent/driver.js';
import type { DriverName } from '../../lib/dev-agent/drivers.js';
import type { Service } from '../../lib/service.js';
import { createService } from '../../lib/service.js';
import { Program } from './program.js';
import { RoundRobin } from './round-robin.js';
import { RecordingLogger } from './test-api.js';
import { configFor, freePort, ServiceClient } from './test-service.js';
import { eventually } from './waiting.js';

export interface ReplicasOptions {
  /** How many; two without it. */
  readonly count?: number;
  readonly driver?: DriverName | TaskDriver;
  /** Of all of them. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** One of several services, in this process or another; the same name and address after a restart. */
export abstract class TestReplica {
  readonly name: string;
  readonly url: string;
  readonly client: ServiceClient;

  constructor(name: string, url: string, token: string | undefined) {
    this.name = name;
    this.url = url;
    this.client = new ServiceClient(url, token);
  }

  /** Resolves once it serves. */
  abstract start(): Promise<void>;
  /** Ends it in order. */
  abstract stop(): Promise<void>;

  /** Resolves once it serves, and has read Nomad. */
  async untilReady(): Promise<void> {
    await eventually(
      `${this.name} to have read Nomad`,
      async () => {
        const path = '/statistics/execution-environments';
        return await this.client.send('GET', path).then(
          ({ ok }) => ok,
          () => false,
        );
      },
      30_000,
    );
  }
}

/** A replica in this process. */
export class ReplicaHere extends TestReplica {
  readonly log = new RecordingLogger();
  readonly #create: (log: RecordingLogger) => Service;
  #service: Service | undefined;

  constructor(
    name: string,
    url: string,
    token: string | undefined,
    create: (log: RecordingLogger) => Service,
  ) {
    super(name, url, token);
    this.#create = create;
  }

  get service(): Service {
    if (!this.#service) throw new Error(`${this.name} was not started`);
    return this.#service;
  }

  async start(): Promise<void> {
    this.#service = this.#create(this.log);
    await this.#service.start();
  }

  async stop(): Promise<void> {
    await this.#service?.destroy();
  }
}

/** A replica in a process of its own, which may be killed. */
export class ReplicaProcess extends TestReplica {
  readonly #env: Readonly<Record<string, string>>;
  #program: Program | undefined;

  constructor(name: string, url: string, token: string | undefined, env: Readonly<Record<string, string>>) {
    super(name, url, token);
    this.#env = env;
  }

  get program(): Program {
    if (!this.#program) throw new Error(`${this.name} was not started`);
    return this.#program;
  }

  async start(): Promise<void> {
    this.#program = new Program(['serve'], this.#env);
    await this.#program.printed(/"message":"(serving)"/);
  }

  async stop(): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]();
  }

  /** `kill -9`; resolves once it is gone. */
  async kill(): Promise<void> {
    this.program.kill('SIGKILL');
    await this.program.ended();
  }
}

/** Several services on one embedded agent, behind a round-robin balancer. */
export class Replicas<R extends TestReplica> implements AsyncDisposable {
  readonly agent: DevAgent;
  readonly members: readonly R[];
  readonly balancer: RoundRobin;
  /** Talks to all of them in turn. */
  readonly client: ServiceClient;

  private constructor(
    agent: DevAgent,
    members: readonly R[],
    balancer: RoundRobin,
    token: string | undefined,
  ) {
    this.agent = agent;
    this.members = members;
    this.balancer = balancer;
    this.client = new ServiceClient(balancer.url, token);
  }

  /** Services in this process, started and ready. */
  static here(options: ReplicasOptions = {}): Promise<Replicas<ReplicaHere>> {
    return Replicas.#open(
      options,
      (name, url, settings, nomadAddress) =>
        new ReplicaHere(name, url, settings['SERAI_AUTH_TOKEN'], (log) =>
          createService(configFor(nomadAddress, settings), { log }),
        ),
    );
  }

  /** Services in processes of their own, started and ready. */
  static processes(options: ReplicasOptions = {}): Promise<Replicas<ReplicaProcess>> {
    return Replicas.#open(
      options,
      (name, url, settings, nomadAddress) =>
        new ReplicaProcess(name, url, settings['SERAI_AUTH_TOKEN'], {
          NOMAD_ADDR: nomadAddress,
          ...settings,
        }),
    );
  }

  static async #open<R extends TestReplica>(
    { count = 2, driver = 'process', settings = {} }: ReplicasOptions,
    create: (name: string, url: string, settings: Record<string, string>, nomadAddress: string) => R,
  ): Promise<Replicas<R>> {
    const agent = new DevAgent({ driver });
    await agent.start();
    const members: R[] = [];
    // Runners share /tmp here, and a replica sweeps away what another process of its name has left there.
    const ownName = randomUUID().slice(0, 8);
    for (let index = 0; index < count; index += 1) {
      const name = `replica_${index}_${ownName}`;
      const port = await freePort();
      const own = {
        SERAI_CLUSTER_SECRET: 'the-secret-of-the-replicas',
        SERAI_CLUSTER_REPLICA: name,
        SERAI_SERVER_PORT: String(port),
        SERAI_SHUTDOWN_GRACE_SECONDS: '0',
        ...settings,
      };
      members.push(create(name, `http://127.0.0.1:${port}`, own, agent.address));
    }
    const balancer = await RoundRobin.open(members.map(({ url }) => url));
    const opened = new Replicas(agent, members, balancer, settings['SERAI_AUTH_TOKEN']);
    try {
      await Promise.all(members.map((member) => member.start()));
      await Promise.all(members.map((member) => member.untilReady()));
      return opened;
    } catch (error) {
      await opened[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** One of them. */
  member(index: number): R {
    const member = this.members[index];
    if (!member) throw new Error(`there is no replica ${index}`);
    return member;
  }

  /** Resolves once each of them counts that many idle runners. */
  async untilIdle(size: number, environment = 0): Promise<void> {
    await Promise.all(this.members.map(({ client }) => client.untilIdle(size, environment)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.balancer[Symbol.asyncDispose]();
    await Promise.all(this.members.map((member) => member.stop()));
    await this.agent.stop();
  }
}
