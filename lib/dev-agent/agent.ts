import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { cpus, hostname, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import type { Clock } from '../base/clock.js';
import { systemClock } from '../base/clock.js';
import type { Randomness } from '../base/ids.js';
import { systemRandomness } from '../base/ids.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import type { Logger } from '../base/log.js';
import { silentLogger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { AllocationFolders, AllocationRunner } from './client/allocation-runner.js';
import { Cluster } from './cluster.js';
import type { TaskDriver } from './driver.js';
import type { DriverName } from './drivers.js';
import { createDriver } from './drivers.js';
import type { FaultTargets } from './faults.js';
import { Faults } from './faults.js';
import type { Guardian } from './guardian.js';
import { guardFolder } from './guardian.js';
import { createApp } from './http/app.js';
import { EventStreams } from './http/event-stream.js';
import { ExecServer } from './http/exec-server.js';
import { Listener } from './http/listener.js';
import type { Capacity } from './scheduler/placement.js';
import { Timestamps } from './time.js';

/**
 * The embedded agent: the part of Nomad's HTTP API that the service uses, over tasks of this machine.
 *
 *   HTTP (http/) ─▶ cluster (state, scheduler, node) ─▶ driver (processes)
 *
 * It is for development, tests and demonstrations. It listens on loopback only, keeps everything in memory and in one
 * temporary folder, and leaves nothing behind. It shares no code with the service's Nomad client, so that a fault of the
 * one is not hidden by the same fault of the other.
 */
export interface DevAgentOptions {
  /** A driver by name, or one that the caller made. */
  readonly driver: DriverName | TaskDriver;
  /** Default 0: any free one. */
  readonly port?: number;
  readonly clock?: Clock;
  readonly randomness?: Randomness;
  readonly log?: Logger;
  /**
   * Run every task with the one driver, whatever driver the job names (default). Otherwise only tasks that name
   * `docker`, `exec` or `raw_exec` are placed.
   */
  readonly acceptAnyDriver?: boolean;
  /** What the node offers. Default: what the machine has; for `simulated`, as good as no bound. */
  readonly capacity?: Capacity;
  /** How long opening an exec takes beyond what it takes anyway; default 0. */
  readonly execDelayMs?: number;
  /** Execs that are being opened at once; default: no bound. */
  readonly maxExecsOpening?: number;
  /** How long starting a task takes beyond what it takes anyway; default 0. */
  readonly startDelayMs?: number;
  /** Tasks that are being started at once; default: no bound. */
  readonly maxStarts?: number;
  /** Default `default` alone. */
  readonly namespaces?: readonly string[];
}

const NO_BOUND = 1_000_000_000;
const MHZ_PER_CORE = 2_500;
const KNOWN_DRIVERS = new Set(['docker', 'exec', 'raw_exec']);

export class DevAgent implements Lifecycle {
  /** Misbehaviour on request. */
  readonly faults: Faults;
  readonly #options: DevAgentOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #driver: TaskDriver;
  readonly #timestamps: Timestamps;
  readonly #streams: EventStreams;
  readonly #execs: ExecServer;
  readonly #listener: Listener;
  #state: LifecycleState = 'new';
  #cluster: Cluster | undefined;
  /** Where allocations have their folders; none for tasks that are only simulated. */
  #folder = '';
  #guardian: Guardian | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: DevAgentOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#driver =
      typeof options.driver === 'string'
        ? createDriver(options.driver, { clock: this.#clock, log: this.#log })
        : options.driver;
    this.#streams = new EventStreams(this.#clock);
    this.#timestamps = new Timestamps(this.#clock);
    const cluster = (): Cluster => this.#running;
    const faults = (): Faults => this.faults;
    this.#execs = new ExecServer({
      cluster,
      faults,
      clock: this.#clock,
      delayMs: options.execDelayMs ?? 0,
      opening: new Slots(options.maxExecsOpening ?? NO_BOUND),
    });
    const app = createApp({
      cluster,
      log: this.#log,
      streams: this.#streams,
      faults,
      self: () => ({
        driver: this.#driver.name,
        isolates: this.#driver.name === 'sandbox',
        openExecs: this.#execs.size,
      }),
    });
    this.#listener = new Listener({
      app,
      onUpgrade: (request, socket, head) => void this.#execs.upgrade(request, socket, head),
    });
    this.faults = new Faults({ clock: this.#clock, log: this.#log, targets: this.#faultTargets() });
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Where the API is, once started: `http://127.0.0.1:<port>`. */
  get address(): string {
    return `http://127.0.0.1:${this.#listener.port}`;
  }

  /** Event streams that are open. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Exec sockets that are open. */
  get openExecs(): number {
    return this.#execs.size;
  }

  /** The name of the one node. */
  get nodeName(): string {
    return hostname();
  }

  get driverName(): TaskDriver['name'] {
    return this.#driver.name;
  }

  /** Rejects, with a sentence for people, where this machine cannot run the driver or the port is taken. */
  async start(): Promise<void> {
    assertNew('an agent', this.#state);
    try {
      await this.#driver.check();
      if (this.#driver.name !== 'simulated') await this.#makeFolder();
      this.#cluster = this.#createCluster();
      await this.#listener.open(this.#options.port ?? 0);
      this.#state = 'running';
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Ends every task and socket and removes the agent's folder. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #makeFolder(): Promise<void> {
    this.#folder = await mkdtemp(path.join(tmpdir(), 'serai-agent-'));
    this.#guardian = guardFolder(this.#folder);
    // A task may run as another user, who has to reach its own folder in this one.
    await chmod(this.#folder, 0o711);
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    await this.faults.stop();
    await this.#listener.close();
    await this.#cluster?.stop();
    await this.#driver.stop();
    if (this.#folder !== '') await this.#realFolders().remove(this.#folder);
    await this.#guardian?.stop();
    this.#state = 'stopped';
  }

  get #running(): Cluster {
    if (!this.#cluster) throw new Error('the agent is not started');
    return this.#cluster;
  }

  #realFolders(): AllocationFolders {
    return {
      base: this.#folder,
      make: async (folder) => {
        await mkdir(folder, { recursive: true });
        await chmod(folder, 0o777);
      },
      remove: (folder) =>
        rm(folder, { recursive: true, force: true }).catch((error: unknown) => {
          this.#log.warn('cannot remove a folder', { folder, error });
        }),
    };
  }

  #faultTargets(): FaultTargets {
    const runner = (allocationId: string): AllocationRunner | undefined =>
      this.#running.client.runner(allocationId);
    return {
      cutStreams: () => this.#streams.cut(),
      loseEvents: (count) => this.#running.store.events.loseNext(count),
      dropExecs: (allocationId) => this.#execs.drop(allocationId),
      restartTask: async (allocationId, task) => (await runner(allocationId)?.restart(task)) ?? false,
      killTask: async (allocationId, task, options) =>
        (await runner(allocationId)?.die(task, options)) ?? false,
      closeListener: () => this.#listener.close(),
      openListener: () => this.#listener.open(this.#listener.port),
      wipe: () => this.#wipe(),
    };
  }

  async #wipe(): Promise<void> {
    const old = this.#running;
    this.#cluster = this.#createCluster();
    this.#streams.cut();
    this.#execs.drop();
    await old.stop();
  }

  #createCluster(): Cluster {
    const { acceptAnyDriver = true, capacity, startDelayMs = 0, maxStarts = NO_BOUND } = this.#options;
    const isSimulated = this.#driver.name === 'simulated';
    return new Cluster({
      clock: this.#clock,
      timestamps: this.#timestamps,
      randomness: this.#options.randomness ?? systemRandomness,
      driver: this.#driver,
      starts: new Slots(maxStarts),
      startDelayMs,
      folders: isSimulated ? NO_FOLDERS : this.#realFolders(),
      showsHostPaths: this.#driver.name === 'process',
      capacity: capacity ?? (isSimulated ? { cpuMhz: NO_BOUND, memoryMb: NO_BOUND } : machineCapacity()),
      acceptsDriver: (name) => acceptAnyDriver || KNOWN_DRIVERS.has(name),
      nodeName: this.nodeName,
      namespaces: this.#options.namespaces ?? ['default'],
    });
  }
}

/** Simulated tasks have no files. */
const NO_FOLDERS: AllocationFolders = {
  base: '',
  make: () => Promise.resolve(),
  remove: () => Promise.resolve(),
};

function machineCapacity(): Capacity {
  return { cpuMhz: cpus().length * MHZ_PER_CORE, memoryMb: Math.floor(totalmem() / 1024 / 1024) };
}
