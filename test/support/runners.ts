import { reasonOf } from '../../lib/base/abort.js';
import type { LogFields, Logger } from '../../lib/base/log.js';
import { silentLogger } from '../../lib/base/log.js';
import type { EnvironmentId } from '../../lib/base/ids.js';
import { replicaId, systemRandomness } from '../../lib/base/ids.js';
import type { Cluster } from '../../lib/cluster/api.js';
import { Standalone } from '../../lib/cluster/standalone.js';
import type { Environment } from '../../lib/environments/environment.js';
import { EnvironmentStore } from '../../lib/environments/store.js';
import type { Nomad } from '../../lib/nomad/api.js';
import type { Allocation } from '../../lib/nomad/model.js';
import type { EnvironmentStatistics } from '../../lib/protocol/http.js';
import { RunnerManager } from '../../lib/runners/manager.js';
import type { ClaimedRunner } from '../../lib/runners/runner.js';
import { anEnvironment, theBaseJob } from './environments.js';
import { FakeClock, settle } from './fake-clock.js';
import { FakeNomad } from './fake-nomad.js';

export interface RunnersFixture {
  readonly nomad: FakeNomad;
  readonly clock: FakeClock;
  readonly manager: RunnerManager;
  /** Messages of warnings and worse. */
  readonly warnings: string[];
  /** Claims a runner of the fixture's environment. */
  readonly claim: (inactivityTimeoutSeconds?: number, environmentId?: number) => Promise<ClaimedRunner>;
  readonly statistics: (environmentId?: number) => EnvironmentStatistics;
}

export interface RunnersOptions {
  readonly nomad?: FakeNomad;
  readonly clock?: FakeClock;
  /** Registered before the fixture is handed out; default one environment of two runners. */
  readonly environments?: readonly Environment[];
  readonly startTimeout?: number;
  readonly reconcileInterval?: number;
  readonly maxLifetime?: number;
  readonly orphanTimeout?: number;
  /** Default: alone, as `self`. */
  readonly cluster?: Cluster;
  /** Default 0: pools are refilled as soon as no claim is under way. */
  readonly refillDelayMs?: number;
  /** False leaves the manager new. */
  readonly start?: boolean;
}

/** A Nomad whose events show no jobs. */
export function nomadHidingJobs(): FakeNomad {
  const nomad = new FakeNomad();
  nomad.hidesJobs = true;
  return nomad;
}

/** A manager over a Nomad in memory and a clock that stands still, synced and with its pools full. */
export async function startRunners(options: RunnersOptions = {}): Promise<RunnersFixture> {
  const { nomad = new FakeNomad(), clock = new FakeClock(), environments = [anEnvironment()] } = options;
  const warnings: string[] = [];
  const manager = createManager(nomad, clock, recordingLogger(warnings), options);
  if (options.start !== false) {
    await manager.start();
    await settle();
    if (manager.ready) for (const environment of environments) await manager.putEnvironment(environment);
    await settle();
  }
  return {
    nomad,
    clock,
    manager,
    warnings,
    claim: (inactivityTimeoutSeconds = 0, environmentId = 7) =>
      manager.claim({ environmentId: environmentId as EnvironmentId, inactivityTimeoutSeconds }),
    statistics: (environmentId = 7) => {
      const entry = manager.statistics().find(({ id }) => id === environmentId);
      if (!entry) throw new Error(`no statistics of environment ${environmentId}`);
      return entry;
    },
  };
}

function createManager(nomad: Nomad, clock: FakeClock, log: Logger, options: RunnersOptions): RunnerManager {
  const store = new EnvironmentStore({ jobs: nomad.jobs, base: theBaseJob(), networkMode: 'bridge' });
  return new RunnerManager({
    nomad,
    cluster: options.cluster ?? new Standalone({ id: replicaId('self'), address: 'http://127.0.0.1:1' }),
    environments: store,
    pool: { startTimeout: options.startTimeout ?? 300, reconcileInterval: options.reconcileInterval ?? 300 },
    runners: { maxLifetime: options.maxLifetime ?? 86_400, orphanTimeout: options.orphanTimeout ?? 600 },
    refillDelayMs: options.refillDelayMs ?? 0,
    clock,
    randomness: { uuid: () => systemRandomness.uuid(), random: () => 0.5 },
    log,
  });
}

/** Keeps the messages of warnings and errors. */
function recordingLogger(messages: string[]): Logger {
  const keep = (message: string, _fields?: LogFields): void => void messages.push(message);
  const logger: Logger = { ...silentLogger, warn: keep, error: keep, child: () => logger };
  return logger;
}

/** Puts the news of allocations on the event stream, true or not, and lets it settle. */
export function tell(nomad: FakeNomad, ...allocations: Allocation[]): Promise<void> {
  for (const allocation of allocations) {
    nomad.tell({ topic: 'allocation', index: allocation.modifyIndex, allocation });
  }
  return settle();
}

/** Code and reason of the end of a claim; undefined while it lasts. */
export function whyGone({ runnerSignal }: ClaimedRunner): unknown {
  if (!runnerSignal.aborted) return undefined;
  const { code, details } = reasonOf(runnerSignal);
  return [code, details.reason];
}
