/**
 * One of several services on one Nomad: tells the others that it lives, looks at them, and leads when it is its turn.
 *
 * Three loops, so that a slow request of one holds up none of the others:
 *
 *   heartbeat  every 5 s   serai/replicas/<id> ── taken by another process ──▶ fenced, for good
 *   look       every 2 s   serai/              ──▶ members, lease
 *   lease      every 5 s   serai/lease         ──▶ leads
 *
 * What the others are told of changes (`onChange`) is what changed since they were last told. Stopping gives lease and
 * name back, so that the others need not wait.
 */
import { deadline, orAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { hasCode, ServiceError } from '../base/errors.js';
import type { Randomness, ReplicaId } from '../base/ids.js';
import type { Lifecycle, LifecycleState } from '../base/lifecycle.js';
import { assertNew } from '../base/lifecycle.js';
import type { Logger } from '../base/log.js';
import type { NomadVariables } from '../nomad/api.js';
import type { Cluster, Replica } from './api.js';
import { Lease } from './lease.js';
import { Members } from './members.js';
import { Observer } from './observer.js';
import { keepPace } from './pace.js';
import { Registration } from './registration.js';
import { Rendezvous } from './rendezvous.js';
import { timelyVariables } from './timely-variables.js';
import { BEAT_MS, LOOK_MS, REQUEST_MS, RETRY_MS } from './times.js';
import type { Duty } from './troubles.js';
import { Troubles } from './troubles.js';

export interface SharedClusterDeps {
  readonly self: ReplicaId;
  /** Where the others reach this one; asked once, by `start`. */
  readonly address: () => string;
  readonly variables: NomadVariables;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
}

export class SharedCluster implements Cluster, Lifecycle {
  readonly isShared = true;
  readonly #deps: SharedClusterDeps;
  readonly #variables: NomadVariables;
  readonly #registration: Registration;
  readonly #members: Members;
  readonly #lease: Lease;
  readonly #observer: Observer;
  readonly #troubles: Troubles;
  readonly #abort = new AbortController();
  readonly #listeners = new Set<() => void>();
  #address: string | undefined;
  #living: readonly Replica[] = [];
  #rendezvous = new Rendezvous([]);
  #isFenced = false;
  #isInformed = false;
  /** What listeners were last told of. */
  #told = '';
  #loops: Promise<unknown> = Promise.resolve();
  #state: LifecycleState = 'new';
  #stopping: Promise<void> | undefined;

  constructor(deps: SharedClusterDeps) {
    const { self: id, clock, randomness } = deps;
    this.#deps = deps;
    this.#variables = timelyVariables(deps.variables, clock);
    const own = { id, boot: randomness.uuid(), variables: this.#variables };
    this.#registration = new Registration({ ...own, address: () => this.#address ?? '' });
    this.#members = new Members(id);
    this.#lease = new Lease({ ...own, clock, onLapse: () => this.#announce() });
    this.#observer = new Observer({
      variables: this.#variables,
      clock,
      members: this.#members,
      lease: this.#lease,
      registration: this.#registration,
    });
    this.#troubles = new Troubles(deps);
  }

  get state(): LifecycleState {
    return this.#state;
  }

  get self(): ReplicaId {
    return this.#deps.self;
  }

  get leads(): boolean {
    return this.#lease.leads && this.#isMember;
  }

  get isFenced(): boolean {
    return this.#isFenced;
  }

  get isInformed(): boolean {
    return this.#isInformed;
  }

  get trouble(): string | undefined {
    return this.#troubles.sentence;
  }

  living(): readonly Replica[] {
    return this.#living;
  }

  find(id: ReplicaId): Replica | undefined {
    return this.#living.find((each) => each.id === id);
  }

  async seek(id: ReplicaId, signal: AbortSignal): Promise<Replica | undefined> {
    const known = this.find(id);
    if (known || this.#state !== 'running') return known;
    await orAbort(this.#observe(this.#abort.signal), signal);
    return this.find(id);
  }

  assignee(name: string): ReplicaId {
    return this.#rendezvous.assignee(name) ?? this.self;
  }

  suspect(id: ReplicaId): void {
    this.#members.suspect(id);
    this.#announce();
  }

  moved(id: ReplicaId): void {
    this.#members.moved(id);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Begins to take part, and resolves at once: Nomad may be down. */
  start(): Promise<void> {
    assertNew('a replica', this.#state);
    this.#state = 'running';
    this.#address = this.#deps.address();
    this.#announce();
    this.#loops = this.#run();
    return Promise.resolve();
  }

  /** Gives lease and name back, where Nomad answers. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Whether the others can know of this one. */
  get #isMember(): boolean {
    return this.#registration.isHeld && !this.#registration.isRefused && !this.#isFenced;
  }

  async #run(): Promise<void> {
    // The name first, and only then a look: a list is believed where it shows one's own name.
    let isNamed = (): void => undefined;
    const named = new Promise<void>((resolve) => (isNamed = resolve));
    const beats = this.#every(BEAT_MS, 'heartbeat', (signal) => this.#beat(signal).finally(isNamed));
    await named;
    await Promise.all([
      beats,
      this.#every(LOOK_MS, 'others', (signal) => this.#look(signal)),
      this.#every(RETRY_MS, 'lease', (signal) => this.#pursue(signal)),
    ]);
    if (this.#isFenced) await this.#farewell((signal) => this.#lease.release(signal));
  }

  #every(everyMs: number, duty: Duty, step: (signal: AbortSignal) => Promise<void>): Promise<void> {
    return keepPace({
      clock: this.#deps.clock,
      signal: this.#abort.signal,
      everyMs,
      retryMs: RETRY_MS,
      step: async (signal) => {
        await step(signal);
        this.#troubles.succeeded(duty);
        this.#announce();
      },
      onFailure: (error) => {
        this.#troubles.failed(duty, error);
        this.#announce();
      },
    });
  }

  async #beat(signal: AbortSignal): Promise<void> {
    if ((await this.#registration.beat(signal)) === 'taken') this.#fence();
  }

  async #look(signal: AbortSignal): Promise<void> {
    if ((await this.#observe(signal)) && this.leads) await this.#forget(signal);
  }

  /** Looks at the others. False where there is nothing to see. */
  async #observe(signal: AbortSignal): Promise<boolean> {
    const isSeen = await this.#observer.look(signal);
    this.#isInformed ||= isSeen;
    this.#announce();
    return isSeen;
  }

  async #pursue(signal: AbortSignal): Promise<void> {
    if (this.#isMember) await this.#lease.pursue(signal);
  }

  /** Removes what replicas left behind that do not come back. */
  async #forget(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    for (const { path, modifyIndex } of this.#members.forgotten()) {
      try {
        await this.#variables.remove(path, { cas: modifyIndex, signal });
        log.info('the entry of a service that is gone for long was removed', { path });
        this.#troubles.succeeded('removal');
      } catch (error) {
        if (signal.aborted) return;
        // A conflict means that it is back.
        if (!hasCode(error, 'NOMAD_CONFLICT')) this.#troubles.failed('removal', error);
      }
    }
  }

  #fence(): void {
    this.#isFenced = true;
    this.#deps.log.error(
      'another process goes by the name of this service (cluster.replica): this one serves nobody any more, stop it',
      { replica: this.self },
    );
    this.#lease.end();
    this.#abort.abort(new ServiceError('FENCED', 'another process goes by the name of this service'));
    this.#announce();
  }

  async #shutDown(): Promise<void> {
    const wasRunning = this.#state === 'running';
    this.#state = 'stopping';
    this.#lease.end();
    this.#abort.abort(new ServiceError('STOPPED', 'the service is stopping'));
    await this.#loops;
    if (wasRunning && !this.#isFenced) {
      await Promise.all([
        this.#farewell((signal) => this.#lease.release(signal)),
        this.#farewell((signal) => this.#registration.leave(signal)),
      ]);
    }
    this.#listeners.clear();
    this.#state = 'stopped';
  }

  /** What is nice to be done at the end: without it the others wait until this one was silent for long enough. */
  async #farewell(step: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps;
    using limit = deadline(clock, REQUEST_MS, 'STOPPED', 'the service has stopped');
    try {
      await step(limit.signal);
    } catch (error) {
      log.info('Nomad keeps what this service tells the others until they find it silent', { error });
    }
  }

  /** Tells listeners where something changed since they were last told. */
  #announce(): void {
    const { self, log } = this.#deps;
    const isCounted = !this.#isFenced && !this.#registration.isRefused;
    const own = isCounted && this.#address !== undefined ? [{ id: self, address: this.#address }] : [];
    const living = [...own, ...this.#members.living()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const { leads, isFenced, isInformed } = this;
    const now = JSON.stringify({ living, leads, isFenced, isInformed });
    if (now === this.#told) return;
    this.#told = now;
    this.#living = living;
    this.#rendezvous = new Rendezvous(living.map(({ id }) => id));
    log.info('the services on this Nomad', { living: living.map(({ id }) => id), leads });
    for (const listener of [...this.#listeners]) listener();
  }
}
