/**
 * The composition root: builds every part by hand, starts them in order, stops them in reverse.
 *
 *   NomadClient ◀─ EnvironmentStore ◀─ RunnerManager ◀─ Executions, FileTransfers ◀─ ApiServer
 *
 * The API listens first and says NOT_READY until Nomad was read once, so a service whose Nomad is down is there, and
 * says why. Stopping takes new work off first, lets what runs go on for the grace time, and ends the rest from the top
 * down. Runners stay in Nomad: the next start finds them.
 */
import { Backoff } from './base/backoff.js';
import type { Clock } from './base/clock.js';
import { systemClock } from './base/clock.js';
import { hasCode, messageOf, ServiceError } from './base/errors.js';
import type { Randomness } from './base/ids.js';
import { replicaId, systemRandomness } from './base/ids.js';
import type { Lifecycle, LifecycleState } from './base/lifecycle.js';
import { assertNew } from './base/lifecycle.js';
import type { Logger } from './base/log.js';
import { ApiServer } from './api/server.js';
import type { Cluster } from './cluster/api.js';
import { replicaName } from './cluster/replica-name.js';
import { SharedCluster } from './cluster/shared-cluster.js';
import { Standalone } from './cluster/standalone.js';
import type { Config } from './config/config.js';
import { packageVersion } from './config/version.js';
import type { BaseJob } from './environments/base-job.js';
import { loadBaseJob, packagedBaseJob } from './environments/base-job.js';
import { EnvironmentStore } from './environments/store.js';
import { ColdSessions } from './execution/cold-sessions.js';
import { Executions } from './execution/executions.js';
import { openFileSession } from './execution/file-session.js';
import { FileTransfers } from './execution/files/transfers.js';
import { NomadPulse } from './execution/pulse.js';
import { RunnerBooks } from './execution/runner-books.js';
import { SessionFolders } from './execution/session-folders.js';
import { openTerminalSession } from './execution/terminal-session.js';
import type { WarmSessionsDeps } from './execution/warm/warm-sessions.js';
import { WarmSessions } from './execution/warm/warm-sessions.js';
import { NomadClient } from './nomad/client.js';
import { RunnerManager } from './runners/manager.js';

export interface ServiceDeps {
  readonly log: Logger;
  readonly clock?: Clock;
  readonly randomness?: Randomness;
}

/** How long each layer below the API may take to stop; what is not over then is left to the end of the process. */
const LAYER_STOP_MS = 10_000;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** Builds a service; nothing is opened before `start`. Throws INVALID_CONFIG for what only the parts can judge. */
export function createService(config: Config, deps: ServiceDeps): Service {
  return new Service(config, deps);
}

export class Service implements Lifecycle {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #nomad: NomadClient;
  /** Undefined where the service is alone on its Nomad. */
  readonly #shared: SharedCluster | undefined;
  readonly #runners: RunnerManager;
  readonly #warm: WarmSessions | undefined;
  readonly #executions: Executions;
  readonly #files: FileTransfers;
  readonly #api: ApiServer;
  readonly #abort = new AbortController();
  readonly #retry: Backoff;
  #base: BaseJob | undefined;
  #loading: Promise<void> = Promise.resolve();
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(config: Config, { log, clock = systemClock, randomness = systemRandomness }: ServiceDeps) {
    const shared = { clock, randomness, log };
    this.#config = config;
    this.#log = log;
    this.#clock = clock;
    this.#retry = new Backoff({
      minMs: RETRY_MIN_MS,
      maxMs: RETRY_MAX_MS,
      random: () => randomness.random(),
    });
    this.#nomad = new NomadClient(config.nomad, shared);
    const baseJob = (): BaseJob => this.#baseJob();
    const environments = new EnvironmentStore({
      jobs: this.#nomad.jobs,
      networkMode: config.nomad.network.mode,
      // Asked for at each new template: a base job in HCL is there only once Nomad has parsed it.
      get base() {
        return baseJob();
      },
    });
    const { replica, secret, address } = config.cluster;
    const { host, port } = config.server;
    const self = replica === undefined ? replicaName(port, randomness) : replicaId(replica);
    if (secret !== undefined) {
      this.#shared = new SharedCluster({
        ...shared,
        self,
        address: () => (address ?? this.#api.url).replace(/\/+$/, ''),
        variables: this.#nomad.variables,
      });
    }
    const cluster: Cluster = this.#shared ?? new Standalone({ id: self, address: `http://${host}:${port}` });
    this.#runners = new RunnerManager({
      ...shared,
      cluster,
      nomad: this.#nomad,
      environments,
      pool: config.pool,
      runners: config.runners,
    });
    const folders = new SessionFolders(self, randomness);
    const cold = new ColdSessions({ ...shared, nomad: this.#nomad, folders });
    const pulse = new NomadPulse({ ...shared, nomad: this.#nomad });
    this.#warm =
      config.execution.warm === 'on' ? this.#createWarm({ ...shared, folders, cold, pulse }) : undefined;
    const inRunners = {
      ...shared,
      nomad: this.#nomad,
      config,
      pulse,
      sessions: this.#warm ?? cold,
      books: new RunnerBooks({
        ...shared,
        nomad: this.#nomad,
        scripts: this.#warm,
        pulse,
        stopSignal: this.#abort.signal,
        known: (runner) => this.#warm?.known(runner) ?? {},
      }),
    };
    this.#executions = new Executions({
      ...inRunners,
      replica: cluster.isShared ? self : undefined,
      onFitness: (environment, reason) => this.#runners.reportFitness(environment, reason),
    });
    this.#files = new FileTransfers(inRunners);
    this.#api = new ApiServer({
      ...shared,
      cluster,
      config,
      runners: this.#runners,
      executions: this.#executions,
      files: this.#files,
      version: packageVersion(),
      graceMs: config.shutdown.graceSeconds * 1000,
    });
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Where clients of this machine reach the API, once it was started. */
  get url(): string {
    return this.#api.url;
  }

  /** True once Nomad was read, so that requests are served. */
  get ready(): boolean {
    return this.#runners.ready;
  }

  /** Sessions that are kept open ahead of commands; undefined where `execution.warm` is off. */
  get warmSessions(): Pick<WarmSessions, 'count' | 'idle'> | undefined {
    return this.#warm;
  }

  /**
   * Resolves once the API listens; Nomad may be down. Rejects with INVALID_CONFIG where the address cannot be listened
   * on or the base job is not one, and is stopped then.
   */
  async start(): Promise<void> {
    assertNew('a service', this.#state);
    this.#state = 'running';
    try {
      await this.#api.start();
      await this.#shared?.start();
      await this.#warm?.start();
      if (this.#warm) this.#runners.listen(this.#warm);
      await this.#executions.start();
      await this.#files.start();
      await this.#runners.start();
      await this.#loadBase();
    } catch (error) {
      await this.destroy();
      throw error;
    }
  }

  /** Drains for up to `shutdown.graceSeconds`, then ends what is left. Never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  /** Cuts what runs; also a stop that drains already. */
  destroy(): Promise<void> {
    void this.#api.destroy();
    return this.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #createWarm(
    deps: Pick<WarmSessionsDeps, 'clock' | 'randomness' | 'log' | 'folders' | 'cold' | 'pulse'>,
  ): WarmSessions {
    return new WarmSessions({
      ...deps,
      nomad: this.#nomad,
      config: this.#config,
      open: { terminal: openTerminalSession, files: openFileSession },
      onFitness: (environment, reason) => this.#runners.reportFitness(environment, reason),
      confirmIdle: (id) => this.#runners.confirmIdle(id),
      replaceIdle: (id, reason) => this.#runners.replaceIdle(id, reason),
    });
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    this.#abort.abort(new ServiceError('STOPPED', 'the service is stopping'));
    await this.#api.drain();
    await Promise.all([
      this.#stopLayer('executions', this.#executions),
      this.#stopLayer('files', this.#files),
    ]);
    // Only now may others find the port closed, and take over the runners.
    await this.#api.stop();
    if (this.#warm) await this.#stopLayer('warm sessions', this.#warm);
    await this.#stopLayer('runners', this.#runners);
    if (this.#shared) await this.#stopLayer('place among others', this.#shared);
    await this.#stopLayer('nomad', this.#nomad);
    await this.#loading;
    this.#state = 'stopped';
  }

  async #stopLayer(layer: string, part: { stop(): Promise<void> }): Promise<void> {
    const waiting = new AbortController();
    const late = this.#clock.sleep(LAYER_STOP_MS, waiting.signal).then(() => 'late' as const);
    try {
      const outcome = await Promise.race([part.stop(), late]);
      if (outcome === 'late') this.#log.error('a part of the service did not stop in time', { layer });
    } catch (error) {
      this.#log.error('a part of the service failed to stop', { layer, error });
    } finally {
      waiting.abort();
    }
  }

  /** Reads the base job. One in HCL needs Nomad; where that does not answer, it is tried on in the background. */
  async #loadBase(): Promise<void> {
    const file = this.#config.templates.job ?? packagedBaseJob;
    const { signal } = this.#abort;
    try {
      this.#base = await loadBaseJob(file, this.#nomad.jobs, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (hasCode(error, 'INVALID_CONFIG')) throw error;
      if (hasCode(error, 'NOMAD_REJECTED')) {
        throw new ServiceError('INVALID_CONFIG', `the base job ${file}: ${messageOf(error)}`, {
          cause: error,
        });
      }
      this.#log.warn('Nomad cannot parse the base job yet, trying again until it can', { file, error });
      this.#loading = this.#loadBaseLater(file, signal);
    }
  }

  async #loadBaseLater(file: string, signal: AbortSignal): Promise<void> {
    while (this.#base === undefined) {
      await this.#clock.sleep(this.#retry.nextMs(), signal);
      if (signal.aborted) return;
      try {
        this.#base = await loadBaseJob(file, this.#nomad.jobs, signal);
        this.#log.info('the base job is parsed', { file });
      } catch (error) {
        if (!signal.aborted) this.#log.debug('the base job is still not parsed', { file, error });
      }
    }
  }

  #baseJob(): BaseJob {
    if (this.#base) return this.#base;
    throw new ServiceError('NOT_READY', 'the base job for new environments is not parsed yet', {
      retryAfterSeconds: 5,
    });
  }
}
