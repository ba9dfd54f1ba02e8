import { randomUUID } from 'node:crypto';
import { ServiceError } from '../../lib/base/errors.js';
import type { AllocationId, RunnerId } from '../../lib/base/ids.js';
import { allocationId, environmentId } from '../../lib/base/ids.js';
import type { Environment } from '../../lib/environments/environment.js';
import type { ClaimedRunner, GoneReason } from '../../lib/runners/runner.js';

/** A claimed runner that does what a test says. */
export class TestRunner implements ClaimedRunner {
  readonly id = `1-${randomUUID()}` as RunnerId;
  readonly allocationId: AllocationId;
  readonly task = 'default-task';
  readonly mappedPorts = [];
  readonly environment: Environment;
  readonly abandoned: GoneReason[] = [];
  readonly questions: number[] = [];
  readonly #gone = new AbortController();
  activities = 0;
  news: 'alive' | 'restarted' | 'gone' | 'out-of-memory' = 'alive';

  constructor(environment: Partial<Environment> = {}, allocation = randomUUID() as string) {
    this.allocationId = allocationId(allocation);
    this.environment = {
      id: environmentId(1),
      image: 'image',
      prewarmingPoolSize: 1,
      cpuLimit: 100,
      memoryLimit: 128,
      networkAccess: false,
      exposedPorts: [],
      name: undefined,
      user: undefined,
      environment: {},
      specHash: 'hash',
      ...environment,
    };
  }

  get runnerSignal(): AbortSignal {
    return this.#gone.signal;
  }

  beginActivity(): () => void {
    this.activities += 1;
    let over = false;
    return () => {
      if (!over) this.activities -= 1;
      over = true;
    };
  }

  whatHappened(graceMs: number): Promise<'alive' | 'restarted' | 'gone' | 'out-of-memory'> {
    this.questions.push(graceMs);
    return Promise.resolve(this.news);
  }

  abandon(reason: GoneReason): void {
    this.abandoned.push(reason);
    this.leave(reason);
  }

  /** Takes the runner out of its client's hands. */
  leave(reason: GoneReason): void {
    this.#gone.abort(new ServiceError('RUNNER_GONE', 'the runner is gone', { details: { reason } }));
  }
}
