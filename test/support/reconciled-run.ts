import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { currentOf } from '../../lib/runners/allocation-record.js';
import { IdleOrder } from '../../lib/runners/idle-order.js';
import { Lives } from '../../lib/runners/lives.js';
import type { Effect, Listing, Observation } from '../../lib/runners/observation.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import type { IdleRunner } from '../../lib/runners/runner.js';
import type { Runner } from '../../lib/runners/state.js';
import { commit, createState, environmentOf } from '../../lib/runners/state.js';
import { assertCounts } from './counts.js';
import { anEnvironment } from './environments.js';
import { Truth } from './truth.js';

/** How many kinds of things can happen. */
export const KINDS = 17;

/** One thing that happens: in Nomad, on the way from it, or here. The numbers choose among what is there. */
export type Happening = readonly [kind: number, a: number, b: number];

/** Drives the reconciler with a Nomad whose events may be late, doubled, out of order or lost. */
export class Run {
  readonly truth = new Truth();
  readonly state = createState();
  readonly environment;
  /** How often a client was given each runner. */
  readonly handed = new Map<RunnerId, number>();
  #now = 0;
  #ids = 0;
  /** Requests that Nomad has not answered yet. */
  #pending: Effect[] = [];
  #claiming: RunnerId[] = [];
  #listings: Listing[] = [];
  readonly #lives = new Lives(this.state);
  readonly #order = new IdleOrder(this.state, (id) => /[02468]$/.test(id));
  /** Every life that was told of, with how often its task had been restarted by then. */
  readonly #told = new Map<RunnerId, { readonly runner: IdleRunner; readonly restarts: number }[]>();
  /** The life in which each runner was last taken for a claim. */
  readonly #taken = new Map<RunnerId, IdleRunner>();

  constructor(poolSize: number) {
    this.#lives.listen({
      ready: (runner) => {
        const told = this.#told.get(runner.id) ?? [];
        this.#told.set(runner.id, [...told, { runner, restarts: this.#restartsOf(runner.id) }]);
      },
    });
    this.environment = anEnvironment({ prewarmingPoolSize: poolSize });
    this.truth.setTemplate(this.environment);
    this.observe({ kind: 'listing', listing: this.truth.listing(0) });
    for (let n = 0; n < poolSize; n += 1) this.#answer(0, 0);
    for (const { id } of [...this.truth.allocations.values()]) this.truth.run(id);
    if (poolSize > 1) this.truth.said.forEach((observation) => this.observe(observation));
  }

  observe(observation: Observation): void {
    const before = JSON.stringify([...(this.state.members.get(this.environment.id) ?? [])]);
    const step = reconcile(this.state, observation, {
      now: this.#now,
      startTimeoutMs: 300_000,
      orphanTimeoutMs: 600_000,
      newRunnerId: (id) => {
        this.#ids += 1;
        return `${id}-00000000-0000-4000-8000-${String(this.#ids).padStart(12, '0')}` as RunnerId;
      },
      random: () => 0.5,
    });
    expect(JSON.stringify([...(this.state.members.get(this.environment.id) ?? [])])).to.equal(before);
    commit(this.state, step.changes);
    for (const part of [this.#lives, this.#order]) part.follow(step.changes);
    assertCounts(this.state);
    this.#assertLives();
    for (const effect of step.effects) {
      if (effect.kind === 'claimed') this.handed.set(effect.id, (this.handed.get(effect.id) ?? 0) + 1);
      else if (effect.kind !== 'gone') this.#pending.push(effect);
      // A client loses its runner for a cause in Nomad, never by what was heard alone.
      else if (effect.reason !== 'returned')
        expect(this.truth.disturbed.has(effect.id), effect.id).to.equal(true);
    }
  }

  happen([kind, a, b]: Happening): void {
    const { truth } = this;
    const living = [...truth.allocations.values()].filter((allocation) =>
      truth.jobs.has(allocation.jobId as RunnerId),
    );
    const allocation = living[a % living.length];
    const said = truth.said[a % truth.said.length];
    switch (kind) {
      case 0: // an event is heard: any, again or for the first time
      case 1:
        if (said) this.observe(said);
        return;
      case 2: // the latest events are heard in order
        for (const observation of truth.said.slice(-(1 + (a % 6)))) this.observe(observation);
        return;
      case 3:
      case 4: // Nomad answers a request
        this.#answer(a, b);
        return;
      case 5:
        if (allocation?.clientStatus === 'pending') truth.run(allocation.id);
        return;
      case 6:
        if (allocation?.clientStatus === 'running') truth.restart(allocation.id);
        return;
      case 7: // stopped or lost, and replaced
        if (
          !allocation ||
          allocation.desiredStatus !== 'run' ||
          !['pending', 'running'].includes(allocation.clientStatus)
        )
          return;
        truth.change(allocation.id, b % 2 ? { desiredStatus: 'stop' } : { clientStatus: 'lost' });
        truth.run(truth.place(allocation.jobId as RunnerId).id);
        if (b % 2) truth.change(allocation.id, { clientStatus: 'complete' });
        return;
      case 8: // failed for good, or gone with its job
        if (!allocation) return;
        if (b % 2) truth.purge(allocation.jobId as RunnerId);
        else if (allocation.desiredStatus === 'run' && allocation.clientStatus === 'running')
          truth.change(allocation.id, { clientStatus: 'failed' });
        return;
      case 9: // a listing is begun, or one that was begun is heard
        if (b % 2) this.#listings.push(truth.listing(this.state.sequence));
        else this.#hearListing(a);
        return;
      case 10:
      case 11:
        this.#take();
        return;
      case 12:
      case 13:
        this.#settleClaim(a, b);
        return;
      case 14:
        this.#release(a);
        return;
      case 15:
        this.#now += b * 1000;
        this.observe({ kind: 'tick' });
        return;
      case 16:
        this.#check(a, b);
    }
  }

  /** Nomad comes to rest, everything is answered, and one last listing is heard. */
  comeToRest(): void {
    while (this.#claiming.length > 0) this.#settleClaim(0, 0);
    this.#listings = [];
    for (let round = 0; round < 30; round += 1) {
      while (this.#pending.length > 0) this.#answer(0, 0);
      for (const allocation of [...this.truth.allocations.values()]) {
        if (allocation.clientStatus === 'pending' && allocation.desiredStatus === 'run') {
          this.truth.run(allocation.id);
        }
      }
      this.observe({ kind: 'listing', listing: this.truth.listing(this.state.sequence) });
      this.#now += 35_000;
      this.observe({ kind: 'tick' });
    }
    this.observe({ kind: 'listing', listing: this.truth.listing(this.state.sequence) });
  }

  /** A late event of a runner that is gone may have it looked at or purged once more, which finds nothing. */
  settleInVain(): void {
    for (const effect of this.#pending.splice(0)) {
      expect(effect.kind).to.be.oneOf(['purge', 'inspect']);
      expect(this.truth.jobs.has(effect.id as RunnerId)).to.equal(false);
      if (effect.kind === 'purge') this.observe({ kind: 'purged', id: effect.id });
      if (effect.kind === 'inspect') {
        this.observe({ kind: 'inspected', id: effect.id, job: undefined, allocations: [] });
      }
    }
  }

  /** What must not change by hearing old news. */
  outline(): unknown[] {
    return this.members().map(({ id, phase, generation }) => ({ id, phase, generation }));
  }

  members(): Runner[] {
    return [...(this.state.members.get(this.environment.id)?.values() ?? [])];
  }

  get unanswered(): number {
    return this.#pending.length;
  }

  #hearListing(a: number): void {
    const [listing] = this.#listings.splice(a % Math.max(1, this.#listings.length), 1);
    if (listing) this.observe({ kind: 'listing', listing });
  }

  #answer(a: number, b: number): void {
    const [effect] = this.#pending.splice(a % Math.max(1, this.#pending.length), 1);
    if (!effect) return;
    const { truth } = this;
    switch (effect.kind) {
      case 'register': {
        const runner = this.members().find(({ id }) => id === effect.id);
        if (b % 5 !== 1) truth.register(effect.id, environmentOf(effect.id), runner?.spec ?? '');
        if (b % 5 === 2 || b % 5 === 1)
          this.observe({ kind: 'not-registered', id: effect.id, reason: 'no answer' });
        else this.observe({ kind: 'registered', id: effect.id });
        return;
      }
      case 'purge':
        truth.purge(effect.id);
        if (b % 4 === 1)
          this.#pending.push(effect); // the answer was lost: it is sent again
        else this.observe({ kind: 'purged', id: effect.id });
        return;
      case 'inspect':
        this.observe({
          kind: 'inspected',
          id: effect.id,
          job: truth.job(effect.id),
          allocations: [...truth.allocations.values()].filter(({ jobId }) => jobId === effect.id),
        });
        return;
      case 'restore':
      case 'delete-environment':
      case 'inspect-template':
      case 'claimed':
      case 'gone':
    }
  }

  #take(): void {
    const id = this.#order.next(this.environment.id);
    if (id === undefined) return;
    this.#taken.set(id, this.#livingOf(id)!);
    this.observe({ kind: 'taken', id, timeoutSeconds: 60 });
    this.#claiming.push(id);
    expect(this.#order.next(this.environment.id)).not.to.equal(id);
  }

  #settleClaim(a: number, b: number): void {
    const [id] = this.#claiming.splice(a % Math.max(1, this.#claiming.length), 1);
    if (id === undefined) return;
    const wasGot = b % 4 !== 1 && this.truth.claim(id, 60);
    const isThere = this.truth.jobs.has(id);
    if (b % 4 === 2) this.observe({ kind: 'claim-settled', id, outcome: { kind: 'uncertain' } });
    else if (wasGot)
      this.observe({
        kind: 'claim-settled',
        id,
        outcome: { kind: 'written', jobModifyIndex: this.truth.jobs.get(id)?.writtenAt ?? 0 },
      });
    else this.observe({ kind: 'claim-settled', id, outcome: { kind: isThere ? 'untouched' : 'absent' } });
  }

  /** A check of any runner ends well or badly; a claim that was first is not touched by it. */
  #check(a: number, b: number): void {
    const members = this.members();
    const runner = members[a % members.length];
    if (!runner) return;
    this.observe({ kind: 'checked', id: runner.id, fault: b % 3 === 0 ? undefined : 'it says nothing' });
    const after = this.members().find(({ id }) => id === runner.id);
    const isRemoved = runner.phase.name === 'idle' && b % 3 !== 0;
    if (isRemoved) expect(after?.phase.name).to.equal('removing');
    else expect(after).to.deep.equal(runner);
  }

  #release(a: number): void {
    const used = this.members().filter((runner) => runner.phase.name === 'used');
    const runner = used[a % used.length];
    if (runner) this.observe({ kind: 'released', id: runner.id, reason: 'returned' });
  }

  /** What is idle was told of in the life that it has, and a claim goes on with the life that it was taken in. */
  #assertLives(): void {
    for (const [id, told] of this.#told) {
      const living = told.filter(({ runner }) => !runner.taskSignal.aborted);
      expect(living.length, id).to.be.at.most(1);
      for (const { restarts } of living) expect(restarts, id).to.equal(this.#restartsOf(id));
    }
    for (const { id, phase, allocations } of this.members()) {
      const living = this.#livingOf(id);
      if (phase.name === 'idle') expect(living?.allocationId, id).to.equal(currentOf(allocations)?.id);
      if (phase.name === 'starting' || phase.name === 'removing') expect(living, id).to.equal(undefined);
      if (phase.name === 'claiming') expect(living === undefined, id).to.equal(phase.lost !== undefined);
      if (phase.name === 'used' && this.handed.has(id) && this.#taken.has(id)) {
        expect(living, id).to.equal(this.#taken.get(id));
      }
    }
  }

  #livingOf(id: RunnerId): IdleRunner | undefined {
    return this.#told.get(id)?.find(({ runner }) => !runner.taskSignal.aborted)?.runner;
  }

  #restartsOf(id: RunnerId): number {
    const record = currentOf(this.members().find((runner) => runner.id === id)?.allocations ?? []);
    return record?.task?.restarts ?? 0;
  }
}
