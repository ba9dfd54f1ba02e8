import { ServiceError } from '../../lib/base/errors.js';
import type { EnvironmentId, ExecutionId, RunnerId } from '../../lib/base/ids.js';
import { allocationId, executionId, parseRunnerId } from '../../lib/base/ids.js';
import type { Replica } from '../../lib/cluster/api.js';
import type { Environment } from '../../lib/environments/environment.js';
import type {
  ExecutionRequest,
  ExecutionSink,
  ExecutionsApi,
  Exit,
  PreparedExecution,
  RunningExecution,
} from '../../lib/execution/api.js';
import type { MappedPort } from '../../lib/nomad/model.js';
import type { EnvironmentStatistics } from '../../lib/protocol/http.js';
import type { Location, Runners } from '../../lib/runners/api.js';
import type { ClaimedRunner, GoneReason } from '../../lib/runners/runner.js';
import { gate } from './waiting.js';

/** A claimed runner that nothing stands behind. */
export function claimedRunner(
  id: RunnerId,
  environment: Environment,
  mappedPorts: readonly MappedPort[] = [],
): ClaimedRunner {
  return {
    id,
    environment,
    allocationId: allocationId('alloc'),
    task: 'default-task',
    mappedPorts,
    runnerSignal: new AbortController().signal,
    beginActivity: () => () => undefined,
    whatHappened: () => Promise.resolve('alive'),
    abandon: () => undefined,
  };
}

/** Runners in memory, with the promises of runners/api.ts kept; fields stage its failures. */
export class FakeRunners implements Runners {
  ready = true;
  nomadReachable = true;
  /** Thrown by the next calls, whichever they are. */
  failure: unknown;
  /** Held back until it resolves. */
  claimGate: Promise<void> = Promise.resolve();
  ports: readonly MappedPort[] = [];
  readonly known = new Map<EnvironmentId, Environment>();
  readonly claimed = new Map<string, ClaimedRunner>();
  readonly #claims = new Map<string, AbortController>();
  readonly calls: unknown[] = [];
  /** Runners of other replicas. */
  readonly elsewhere = new Map<string, Replica>();
  /** Replace it to stage takeovers and doubts. */
  onLocate: Runners['locate'] = (id) => {
    const owner = this.elsewhere.get(id);
    return Promise.resolve(owner ? { kind: 'elsewhere', owner } : { kind: 'own' });
  };
  #count = 0;

  async claim(options: Parameters<Runners['claim']>[0]): Promise<ClaimedRunner> {
    this.calls.push(['claim', options.environmentId, options.inactivityTimeoutSeconds]);
    await this.claimGate;
    const environment = this.environment(options.environmentId);
    this.#count += 1;
    const suffix = String(this.#count).padStart(12, '0');
    const parsed = parseRunnerId(`${environment.id}-00000000-0000-4000-8000-${suffix}`);
    if (!parsed) throw new Error('the fake makes bad ids');
    const claim = new AbortController();
    const { runnerId } = parsed;
    const runner = {
      ...claimedRunner(runnerId, environment, this.ports),
      runnerSignal: claim.signal,
    };
    this.claimed.set(runner.id, runner);
    this.#claims.set(runner.id, claim);
    return runner;
  }

  get(id: string): ClaimedRunner {
    this.#check();
    const runner = this.claimed.get(id);
    if (!runner) throw new ServiceError('RUNNER_GONE', `runner ${id.slice(0, 80)} is not there`);
    return runner;
  }

  owns(id: string): boolean {
    return !this.elsewhere.has(id);
  }

  locate(id: string, signal: AbortSignal): Promise<Location> {
    this.calls.push(['locate', id]);
    return this.onLocate(id, signal);
  }

  async return(id: string): Promise<void> {
    await Promise.resolve();
    this.get(id);
    this.lose(id, 'returned');
  }

  /** A claim ends. */
  lose(id: string, reason: GoneReason): void {
    this.claimed.delete(id);
    this.#claims.get(id)?.abort(new ServiceError('RUNNER_GONE', reason, { details: { reason } }));
  }

  statistics(): EnvironmentStatistics[] {
    this.#check();
    return [...this.known.values()].map(({ id, prewarmingPoolSize }) => ({
      id,
      prewarmingPoolSize,
      idleRunners: prewarmingPoolSize,
      usedRunners: this.claimed.size,
      pendingRunners: 0,
      failedRunners: 0,
      state: 'ready',
    }));
  }

  environments(): Environment[] {
    this.#check();
    return [...this.known.values()];
  }

  environment(id: EnvironmentId): Environment {
    this.#check();
    const environment = this.known.get(id);
    if (!environment) throw new ServiceError('ENVIRONMENT_NOT_FOUND', `there is no environment ${id}`);
    return environment;
  }

  async refreshEnvironments(): Promise<void> {
    await Promise.resolve();
    this.#check();
    this.calls.push(['refresh']);
  }

  async putEnvironment(environment: Environment): Promise<'created' | 'replaced'> {
    await Promise.resolve();
    this.#check();
    const outcome = this.known.has(environment.id) ? 'replaced' : 'created';
    this.known.set(environment.id, environment);
    return outcome;
  }

  async deleteEnvironment(id: EnvironmentId): Promise<void> {
    await Promise.resolve();
    this.environment(id);
    this.known.delete(id);
  }

  onGone(): () => void {
    return () => undefined;
  }

  #check(): void {
    if (this.failure !== undefined) throw this.failure as Error;
    if (!this.ready) throw new ServiceError('NOT_READY', 'Nomad was not listed yet');
  }
}

/** One execution that a test plays: it gives output and ends when the test says so. */
export class FakeExecution implements PreparedExecution, RunningExecution {
  readonly id: ExecutionId;
  readonly request: ExecutionRequest;
  readonly #exit = gate<Exit>();
  readonly #running = gate();
  readonly input: Buffer[] = [];
  /** What else was asked of it, in order. */
  readonly asked: unknown[] = [];
  /** How input is taken; replace it to hold it back. */
  take: () => Promise<void> = () => Promise.resolve();
  /** What becomes of a signal; replace it to hold it back or fail. */
  signalled: () => Promise<void> = () => Promise.resolve();
  /** Replace it to hold back what comes after one that was cut. */
  cleared: Promise<void> = Promise.resolve();
  hungUp = 0;
  #sink: ExecutionSink | undefined;

  constructor(id: ExecutionId, request: ExecutionRequest) {
    this.id = id;
    this.request = request;
  }

  get exit(): Promise<Exit> {
    return this.#exit.promise;
  }

  /** Resolves once a socket runs it. */
  get running(): Promise<void> {
    return this.#running.promise;
  }

  get sink(): ExecutionSink {
    if (!this.#sink) throw new Error('the execution does not run');
    return this.#sink;
  }

  run(sink: ExecutionSink): RunningExecution {
    this.#sink = sink;
    this.#running.open();
    return this;
  }

  end(exit: Exit): void {
    this.#exit.open(exit);
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (chunk.length > 0) this.input.push(Buffer.from(chunk));
    await this.take();
  }

  closeStdin(): void {
    this.asked.push('eof');
  }

  resize(columns: number, rows: number): void {
    this.asked.push([columns, rows]);
  }

  async signal(name: string): Promise<void> {
    this.asked.push(name);
    await this.signalled();
  }

  hangUp(): void {
    this.hungUp += 1;
    this.end({ kind: 'hang-up' });
  }
}

export class FakeExecutions implements ExecutionsApi {
  readonly prepared = new Map<string, FakeExecution>();
  readonly taken = new Set<string>();
  /** Called with each new execution. */
  onPrepare: (execution: FakeExecution) => void = () => undefined;
  /** Thrown by the next preparations. */
  failure: ServiceError | undefined;
  #count = 0;

  prepare(_runner: ClaimedRunner, request: ExecutionRequest): ExecutionId {
    if (this.failure) throw this.failure;
    this.#count += 1;
    const execution = new FakeExecution(executionId(`execution-${this.#count}`), request);
    this.prepared.set(execution.id, execution);
    this.onPrepare(execution);
    return execution.id;
  }

  take(_runner: ClaimedRunner, id: ExecutionId): FakeExecution {
    const execution = this.prepared.get(id);
    if (!execution) throw new ServiceError('EXECUTION_NOT_FOUND', 'there is no such execution');
    if (this.taken.has(id)) throw new ServiceError('EXECUTION_TAKEN', 'the execution has its socket');
    this.taken.add(id);
    return execution;
  }

  /** The one prepared last. */
  get last(): FakeExecution {
    const execution = [...this.prepared.values()].at(-1);
    if (!execution) throw new Error('nothing was prepared');
    return execution;
  }
}
