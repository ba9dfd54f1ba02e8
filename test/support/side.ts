import { expect } from 'chai';
import type { ReplicaId, RunnerId } from '../../lib/base/ids.js';
import { replicaId } from '../../lib/base/ids.js';
import type { Effect, Listing, Observation } from '../../lib/runners/observation.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import { judge } from '../../lib/runners/secure.js';
import type { ClusterView, Runner, Use } from '../../lib/runners/state.js';
import { commit, createState, environmentOf } from '../../lib/runners/state.js';
import type { Truth } from './truth.js';

/** One step of something that takes several: a request to Nomad, or its answer. Answers what is next. */
type Step = (b: number) => Step | undefined;
type Purge = Extract<Effect, { kind: 'purge' }>;

let ids = 0;

/** One replica: its reconciler, and what it is about to ask Nomad for. */
export class Side {
  readonly name: ReplicaId;
  readonly #truth: Truth;
  readonly #handedOut: (id: RunnerId) => void;
  #state = createState();
  #view: ClusterView;
  #now = 0;
  #steps: Step[] = [];
  #listings: Listing[] = [];
  /** Claims whose outcome is being told, so that what it hands out is by a claim. */
  #settling: RunnerId | undefined;

  constructor(name: string, truth: Truth, handedOut: (id: RunnerId) => void) {
    this.name = replicaId(name);
    this.#truth = truth;
    this.#handedOut = handedOut;
    this.#view = { self: this.name, isShared: true, leads: false, living: new Set([this.name]) };
    this.#begin();
  }

  members(): Runner[] {
    return [...this.#state.members.values()].flatMap((members) => [...members.values()]);
  }

  get busy(): number {
    return this.#steps.length;
  }

  hear(observation: Observation | undefined): void {
    if (observation) this.#observe(observation);
  }

  view(leads: boolean, living: readonly string[]): void {
    this.#view = { ...this.#view, leads, living: new Set(living.map(replicaId)) };
    this.#observe({ kind: 'cluster', view: this.#view });
  }

  wait(ms: number): void {
    this.#now += ms;
    this.#observe({ kind: 'tick' });
  }

  /** Begins a listing, or hears one that was begun; both at once where it is prompt. */
  list(isPrompt: boolean): void {
    const begun = this.#truth.listing(this.#state.sequence);
    if (isPrompt) this.#observe({ kind: 'listing', listing: begun });
    else if (this.#listings.length === 0) this.#listings.push(begun);
    else this.#listings.splice(0).forEach((listing) => this.#observe({ kind: 'listing', listing }));
  }

  /** The process ends; what it had sent to Nomad stays. */
  restart(): void {
    this.#steps = [];
    this.#listings = [];
    this.#state = createState(this.#view);
    this.#begin();
  }

  goOn(a: number, b: number): void {
    const [step] = this.#steps.splice(a % Math.max(1, this.#steps.length), 1);
    const next = step?.(b);
    if (next) this.#steps.push(next);
  }

  settle(): void {
    for (let left = 5_000; this.#steps.length > 0; left -= 1) {
      expect(left, 'steps').to.be.greaterThan(0);
      this.goOn(0, 0);
    }
  }

  claim(): void {
    const idle = this.members().find(({ phase }) => phase.name === 'idle');
    if (!idle) return;
    this.#observe({ kind: 'taken', id: idle.id, timeoutSeconds: 60 });
    this.#steps.push(() => this.#readForClaim(idle.id));
  }

  release(a: number, reason: 'returned' | 'inactive'): void {
    const used = this.members().filter(({ phase }) => phase.name === 'used');
    const runner = used[a % used.length];
    if (runner) this.#observe({ kind: 'released', id: runner.id, reason });
  }

  /** A request for a runner that is not ours: taken over where its owner counts as dead. */
  serve(a: number): void {
    const foreign = this.members().filter(({ phase }) => phase.name === 'foreign' || phase.name === 'idle');
    const runner = foreign[a % foreign.length];
    if (runner) this.#steps.push(() => this.#readForTakeover(runner.id));
  }

  #begin(): void {
    this.#state = createState(this.#view);
    this.list(true);
  }

  #observe(observation: Observation): void {
    const { changes, effects } = reconcile(this.#state, observation, {
      now: this.#now,
      startTimeoutMs: 300_000,
      orphanTimeoutMs: 600_000,
      newRunnerId: (id) =>
        `${id}-00000000-0000-4000-8000-${String((ids += 1)).padStart(12, '0')}` as RunnerId,
      random: () => 0.5,
    });
    commit(this.#state, changes);
    for (const effect of effects) {
      if (effect.kind === 'register') this.#steps.push((b) => this.#register(effect.id, b));
      if (effect.kind === 'inspect') this.#steps.push(() => this.#inspect(effect.id));
      if (effect.kind === 'purge') this.#steps.push(() => this.#purge(effect));
      if (effect.kind === 'claimed' && effect.id === this.#settling) this.#handedOut(effect.id);
    }
  }

  #register(id: RunnerId, b: number): undefined {
    const runner = this.members().find((member) => member.id === id);
    if (runner?.phase.name !== 'starting') return;
    if (!this.#view.leads) this.#observe({ kind: 'withdrawn', id });
    else {
      this.#truth.register(id, environmentOf(id), runner.spec ?? '');
      if (b % 5 === 1) this.#observe({ kind: 'not-registered', id, reason: 'no answer' });
      else this.#observe({ kind: 'registered', id });
    }
  }

  #inspect(id: RunnerId): Step {
    const job = this.#truth.job(id);
    const allocations = [...this.#truth.allocations.values()].filter(({ jobId }) => jobId === id);
    return () => void this.#observe({ kind: 'inspected', id, job, allocations });
  }

  #readForClaim(id: RunnerId): Step {
    const job = this.#truth.job(id);
    if (!job) return this.#settled({ kind: 'claim-settled', id, outcome: { kind: 'absent' } });
    if (job.used) return this.#settled({ kind: 'claim-settled', id, outcome: { kind: 'foreign', job } });
    return (b) => {
      const isWritten = this.#truth.write(id, job.writtenAt ?? 0, this.#use(60));
      if (b % 5 === 1) return this.#settled({ kind: 'claim-settled', id, outcome: { kind: 'uncertain' } });
      if (!isWritten) return () => this.#readForClaim(id);
      const jobModifyIndex = this.#truth.job(id)?.writtenAt ?? 0;
      return this.#settled({ kind: 'claim-settled', id, outcome: { kind: 'written', jobModifyIndex } });
    };
  }

  /** The answer is on its way. */
  #settled(observation: Extract<Observation, { kind: 'claim-settled' }>): Step {
    return () => {
      // Only what it has written itself does a claim hand out.
      this.#settling = observation.outcome.kind === 'written' ? observation.id : undefined;
      this.#observe(observation);
      this.#settling = undefined;
      return undefined;
    };
  }

  #readForTakeover(id: RunnerId): Step | undefined {
    const job = this.#truth.job(id);
    const owner = job?.used?.owner;
    if (!job?.used || job.used.ending !== undefined || owner === undefined) return undefined;
    if (owner === this.name || this.#view.living?.has(owner)) return undefined;
    const { timeoutSeconds } = job.used;
    return () => {
      if (!this.#truth.write(id, job.writtenAt ?? 0, this.#use(timeoutSeconds))) return undefined;
      return this.#inspect(id);
    };
  }

  #purge(effect: Purge): Step | undefined {
    const { id, from, reason } = effect;
    if (from === 'nobody') return this.#purged(id, reason);
    const job = this.#truth.job(id);
    if (!job) return () => void this.#observe({ kind: 'purged', id });
    switch (judge(job.used, this.name, from)) {
      case 'kept':
        return () => void this.#observe({ kind: 'kept', job });
      case 'taken':
        return () => this.#purged(id, reason);
      case 'take':
        return () => {
          const isTaken = this.#truth.write(id, job.writtenAt ?? 0, this.#use(0, reason));
          return isTaken ? () => this.#purged(id, reason) : () => this.#purge(effect);
        };
    }
  }

  #purged(id: RunnerId, reason: string): Step {
    const job = this.#truth.job(id);
    // What a client returned is its own to end, whoever serves it by then. What was taken to be purged has no client.
    if (job && reason !== 'returned' && job.used?.ending === undefined) {
      expect(job.used?.owner, `${id}: ${reason}`).to.equal(this.name);
    }
    this.#truth.purge(id);
    return () => void this.#observe({ kind: 'purged', id });
  }

  #use(timeoutSeconds: number, ending?: string): Use {
    return { timeoutSeconds, owner: this.name, ending };
  }
}
