import { expect } from 'chai';
import { ServiceError } from '../../../lib/base/errors.js';
import { newExecutionId, systemRandomness } from '../../../lib/base/ids.js';
import { silentLogger } from '../../../lib/base/log.js';
import type { ExecutionConfig } from '../../../lib/config/config.js';
import { RunnerBook } from '../../../lib/execution/runner-book.js';
import type { SessionKind, SessionLease } from '../../../lib/execution/session-source.js';
import { WarmSessions } from '../../../lib/execution/warm/warm-sessions.js';
import type { IdleRunner } from '../../../lib/runners/runner.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { EXECUTION_CONFIG, STEADY_PULSE, testFolders } from '../../support/executions.js';
import { FakeClock, settle } from '../../support/fake-clock.js';
import { PlayedExecs } from '../../support/played-execs.js';
import { FakeOpenings, FakeSession } from './fake-sessions.js';

export const NEVER = new AbortController().signal;
/** What ran in a session, for its release. */
export const RUN = { id: newExecutionId(systemRandomness), root: undefined };

/** An idle runner, and the same runner in the hands of a client. */
export class PooledRunner extends TestRunner {
  readonly life = new AbortController();

  get idle(): IdleRunner {
    const { id, environment, allocationId, task } = this;
    return { id, environment, allocationId, task, taskSignal: this.life.signal };
  }

  end(): void {
    this.life.abort(new ServiceError('RUNNER_GONE', 'the task restarted'));
  }
}

/** Warm sessions over sessions, a pool and a cold path that a test plays. */
export class WarmFixture {
  readonly clock = new FakeClock();
  readonly nomad = new PlayedExecs();
  readonly terminals = new FakeOpenings();
  readonly files = new FakeOpenings();
  /** What was said of environments, and of runners. */
  readonly fitness: (string | undefined)[] = [];
  readonly replaced: string[] = [];
  readonly confirmed: string[] = [];
  readonly warm: WarmSessions;
  /** Leases that found no session ready. */
  cold = 0;
  isIdle = true;
  readonly #leases = new Set<SessionLease>();

  private constructor(execution: Partial<ExecutionConfig>) {
    const { clock, nomad, terminals, files } = this;
    this.warm = new WarmSessions({
      ...{ nomad, clock, log: silentLogger, pulse: STEADY_PULSE },
      randomness: { ...systemRandomness, random: () => 1 },
      folders: testFolders(),
      config: { execution: { ...EXECUTION_CONFIG, ...execution }, runner: { user: 'user' } },
      open: { terminal: terminals.open, files: files.open },
      cold: { lease: () => Promise.resolve(this.#leaseCold()) },
      onFitness: (_environment, reason) => void this.fitness.push(reason),
      confirmIdle: (id) => void this.confirmed.push(id),
      replaceIdle: (id, reason) => {
        if (this.isIdle) this.replaced.push(`${id}: ${reason}`);
        return this.isIdle;
      },
    });
  }

  static async start(execution: Partial<ExecutionConfig> = {}): Promise<WarmFixture> {
    const fixture = new WarmFixture(execution);
    await fixture.warm.start();
    return fixture;
  }

  /** Ends everything, and fails where something is left. */
  async end(): Promise<void> {
    for (const leased of this.#leases) await leased.release('ended', RUN);
    await this.warm.stop();
    expect(this.warm.count).to.equal(0);
    expect(this.clock.armed).to.equal(0);
  }

  async ready(runner = new PooledRunner()): Promise<PooledRunner> {
    this.warm.ready(runner.idle);
    await settle();
    return runner;
  }

  bookOf(runner: TestRunner): RunnerBook {
    const { nomad, clock, warm } = this;
    const deps = { nomad, clock, log: silentLogger, scripts: warm, pulse: STEADY_PULSE, stopSignal: NEVER };
    return new RunnerBook(deps, runner, warm.known(runner));
  }

  async lease(book: RunnerBook, kind: SessionKind = 'terminal'): Promise<SessionLease> {
    const leased = await this.warm.lease(book, kind, NEVER);
    this.#leases.add(leased);
    return {
      session: leased.session,
      release: (how, run) => {
        this.#leases.delete(leased);
        return leased.release(how, run);
      },
    };
  }

  #leaseCold(): SessionLease {
    this.cold += 1;
    const session = new FakeSession({ runner: new TestRunner(), folder: '', signal: NEVER });
    return { session, release: () => session.close() };
  }
}
