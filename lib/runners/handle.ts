import { setMaxListeners } from 'node:events';
import { reasonOf } from '../base/abort.js';
import type { Clock, Timer } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { AllocationId, RunnerId } from '../base/ids.js';
import { DEFAULT_TASK } from '../environments/base-job.js';
import type { Environment } from '../environments/environment.js';
import type { MappedPort } from '../nomad/model.js';
import { InactivityTimer } from './inactivity.js';
import type { ClaimedRunner, GoneReason } from './runner.js';

export interface RunnerHandleOptions {
  readonly id: RunnerId;
  readonly environment: Environment;
  readonly allocationId: AllocationId;
  readonly mappedPorts: readonly MappedPort[];
  readonly inactivityTimeoutSeconds: number;
  /** 0 means none. */
  readonly maxLifetimeSeconds: number;
  readonly clock: Clock;
  /** Takes the runner from its client; ends this handle in return. */
  readonly giveUp: (reason: GoneReason) => void;
  /** Asks Nomad for the allocation where its events do not arrive just now; resolves when what it said is known. */
  readonly look: () => Promise<void>;
}

/**
 * A claimed runner, for as long as one client has it. Its timers are those of this claim: nothing of it outlives the
 * claim, so no late timer can touch whoever has the runner's place next.
 */
export class RunnerHandle implements ClaimedRunner {
  readonly id: RunnerId;
  readonly environment: Environment;
  readonly allocationId: AllocationId;
  readonly task = DEFAULT_TASK;
  readonly mappedPorts: readonly MappedPort[];
  readonly #options: RunnerHandleOptions;
  readonly #abort = new AbortController();
  readonly #inactivity: InactivityTimer;
  #lifetime: Timer | undefined;

  constructor(options: RunnerHandleOptions) {
    const { clock, giveUp } = options;
    this.#options = options;
    this.id = options.id;
    this.environment = options.environment;
    this.allocationId = options.allocationId;
    this.mappedPorts = options.mappedPorts;
    setMaxListeners(0, this.runnerSignal); // every execution and transfer listens
    this.#inactivity = new InactivityTimer(clock, options.inactivityTimeoutSeconds * 1000, () =>
      giveUp('inactive'),
    );
  }

  get runnerSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Starts the timers. */
  start(): void {
    const { clock, giveUp, maxLifetimeSeconds } = this.#options;
    this.#inactivity.start();
    if (maxLifetimeSeconds > 0) {
      this.#lifetime = clock.setTimer(maxLifetimeSeconds * 1000, () => giveUp('max-lifetime'));
    }
  }

  beginActivity(): () => void {
    return this.#inactivity.begin();
  }

  async whatHappened(graceMs: number): Promise<'alive' | 'restarted' | 'gone' | 'out-of-memory'> {
    await this.#options.clock.sleep(graceMs, this.runnerSignal);
    if (!this.runnerSignal.aborted) await this.#options.look();
    if (!this.runnerSignal.aborted) return 'alive';
    const reason = reasonOf(this.runnerSignal).details.reason;
    return reason === 'restarted' || reason === 'out-of-memory' ? reason : 'gone';
  }

  abandon(reason: GoneReason): void {
    if (!this.runnerSignal.aborted) this.#options.giveUp(reason);
  }

  /** Ends the claim: executions and transfers of it abort with `error`. */
  end(error: ServiceError): void {
    this.#inactivity.stop();
    this.#lifetime?.cancel();
    this.#abort.abort(error);
  }
}

const WHY: Readonly<Record<GoneReason, string>> = {
  returned: 'it was returned',
  inactive: 'it was not used for as long as was asked for',
  restarted: 'Nomad started it anew, and what it held is lost',
  'allocation-stopped': 'Nomad ended it',
  'allocation-lost': 'its node is lost',
  'out-of-memory': 'it ran out of memory',
  'environment-deleted': 'its environment was deleted',
  'unconfirmed-write': 'Nomad did not confirm it',
  'max-lifetime': 'it was held for the longest time allowed',
  'not-killable': 'a program in it could not be ended',
  'taken-over': 'another replica has it now',
  'service-stopping': 'the service is stopping',
};

/** The error of a runner that is no longer its client's. */
export function runnerGone(id: string, reason: GoneReason): ServiceError {
  return new ServiceError('RUNNER_GONE', `runner ${id} is gone: ${WHY[reason]}`, {
    details: { runnerId: id, reason },
  });
}
