import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { AllocationId, RunnerId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { RunnerHandle, runnerGone } from './handle.js';
import { toldReason } from './leave.js';
import type { GoneReason } from './runner.js';
import type { RemovalReason, State } from './state.js';
import { environmentOf, runnerOf } from './state.js';

export interface HandlesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 means none. */
  readonly maxLifetimeSeconds: number;
  readonly giveUp: (id: RunnerId, reason: GoneReason) => void;
  readonly look: (allocationId: AllocationId) => Promise<void>;
}

/** The claimed runners: one handle for each, from the moment Nomad has the claim until the runner is gone. */
export class Handles {
  readonly #deps: HandlesDeps;
  readonly #handles = new Map<RunnerId, RunnerHandle>();
  readonly #listeners = new Set<(id: RunnerId) => void>();

  constructor(deps: HandlesDeps) {
    this.#deps = deps;
  }

  get(id: RunnerId): RunnerHandle | undefined {
    return this.#handles.get(id);
  }

  onGone(listener: (id: RunnerId) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Makes the handle of a runner that is used now, and starts its timers. */
  handOut(state: State, id: RunnerId): void {
    const { clock, log, maxLifetimeSeconds, giveUp, look } = this.#deps;
    const runner = runnerOf(state, id);
    const pool = state.pools.get(environmentOf(id));
    if (runner?.phase.name !== 'used' || !pool) return;
    const { allocationId, timeoutSeconds } = runner.phase;
    const handle = new RunnerHandle({
      id,
      environment: pool.stored.environment,
      allocationId,
      mappedPorts: runner.allocations.find((record) => record.id === allocationId)?.ports ?? [],
      inactivityTimeoutSeconds: timeoutSeconds,
      maxLifetimeSeconds,
      clock,
      giveUp: (reason) => giveUp(id, reason),
      look: () => look(allocationId),
    });
    this.#handles.set(id, handle);
    handle.start();
    log.info('a runner is in use', { runnerId: id, inactivityTimeoutSeconds: timeoutSeconds });
  }

  /** Ends the handle of a runner that is no longer its client's, and tells who listens. */
  takeBack(id: RunnerId, why: RemovalReason): void {
    const handle = this.#handles.get(id);
    if (!handle) return;
    const reason = toldReason(why);
    this.#handles.delete(id);
    this.#deps.log.info('a runner is gone', { runnerId: id, reason });
    handle.end(runnerGone(id, reason));
    for (const listener of this.#listeners) listener(id);
  }

  /** Ends every handle because the service stops; the runners themselves stay as they are. */
  stop(): void {
    const reason: GoneReason = 'service-stopping';
    const stopped = new ServiceError('STOPPED', 'the service is stopping', { details: { reason } });
    for (const handle of this.#handles.values()) handle.end(stopped);
    this.#handles.clear();
    this.#listeners.clear();
  }
}
