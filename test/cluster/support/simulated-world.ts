/**
 * Processes with clocks of their own, one variable store, and a network between them that delays and loses, all in
 * simulated time: a run is the same each time for the same random numbers.
 *
 * A process that is paused (SIGSTOP) runs nothing, while its clock goes on; what was due meanwhile runs when it goes on. A
 * request may be done though its process does not wait for it any more.
 */
import { reasonOf } from '../../../lib/base/abort.js';
import type { Clock, Timer } from '../../../lib/base/clock.js';
import { sleepOn } from '../../../lib/base/clock.js';
import { ServiceError } from '../../../lib/base/errors.js';
import type { NomadVariables } from '../../../lib/nomad/api.js';
import { VariableStore } from './simulated-nomad.js';

interface Due {
  readonly atMs: number;
  readonly run: () => void;
}

export type Capability = 'list' | 'read' | 'write' | 'destroy';

export interface Network {
  /** Longest way of a request, and of an answer. */
  readonly delayMs: number;
  /** How many of 100 requests, and of 100 answers, are lost. */
  readonly lossPercent: number;
}

export class SimulatedWorld {
  readonly store = new VariableStore();
  network: Network = { delayMs: 5, lossPercent: 0 };
  /** Uniform in [0, 1). */
  readonly random: () => number;
  nowMs = 0;
  readonly #due = new Set<Due>();

  constructor(random: () => number) {
    this.random = random;
  }

  schedule(delayMs: number, run: () => void): () => void {
    const due = { atMs: this.nowMs + delayMs, run };
    this.#due.add(due);
    return () => void this.#due.delete(due);
  }

  /** Lets time pass; `observe` sees every moment at which anything may have changed. */
  async advance(ms: number, observe: () => void = () => undefined): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      observe();
      let next: Due | undefined;
      for (const due of this.#due) if (due.atMs <= endMs && (!next || due.atMs < next.atMs)) next = due;
      if (!next) break;
      this.#due.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
    }
    this.nowMs = endMs;
  }

  /** Things that wait for their time. */
  get pending(): number {
    return this.#due.size;
  }
}

/** One process of the world: its clock, and its way to Nomad. */
export class SimulatedProcess implements Clock {
  readonly #world: SimulatedWorld;
  readonly #offsetMs: number;
  #heldBack: (() => void)[] | undefined;
  isCutOff = false;
  /** What Nomad's ACL allows to its token. */
  readonly capabilities = new Set<Capability>(['list', 'read', 'write', 'destroy']);
  /** Never runs again. */
  isKilled = false;

  constructor(world: SimulatedWorld) {
    this.#world = world;
    this.#offsetMs = Math.floor(world.random() * 1_000_000);
  }

  monotonicMs(): number {
    return this.#world.nowMs + this.#offsetMs;
  }

  wallMs(): number {
    return 0;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) callback();
    };
    const cancel = this.#world.schedule(delayMs, () => this.#enter(run));
    return {
      cancel: () => {
        isCancelled = true;
        cancel();
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  pause(): void {
    this.#heldBack ??= [];
  }

  resume(): void {
    const heldBack = this.#heldBack ?? [];
    this.#heldBack = undefined;
    for (const run of heldBack) this.#enter(run);
  }

  /** As this process reaches it. */
  readonly variables: NomadVariables = {
    // What may not be listed is left out without a word.
    list: (prefix, signal) =>
      this.#ask(() => (this.capabilities.has('list') ? this.#world.store.list(prefix) : []), signal),
    get: (path, signal) => this.#ask(() => this.#allowed('read', 'GET', path).get(path), signal),
    put: (path, items, { cas, signal } = {}) =>
      this.#ask(() => this.#allowed('write', 'PUT', path).put(path, items, cas), signal),
    remove: (path, { cas, signal } = {}) =>
      this.#ask(() => this.#allowed('destroy', 'DELETE', path).remove(path, cas), signal),
  };

  #allowed(capability: Capability, method: string, path: string): VariableStore {
    if (this.capabilities.has(capability)) return this.#world.store;
    throw new ServiceError('NOMAD_REFUSED', 'Permission denied', {
      details: { method, path: `/v1/var/${path}` },
    });
  }

  #enter(run: () => void): void {
    if (this.isKilled) return;
    if (this.#heldBack) this.#heldBack.push(run);
    else run();
  }

  #ask<T>(act: () => T, signal: AbortSignal | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(reasonOf(signal));
        return;
      }
      signal?.addEventListener('abort', () => reject(reasonOf(signal)), { once: true });
      this.#travel(() => {
        const answer = attempt(act);
        this.#travel(() =>
          this.#enter(() => ('value' in answer ? resolve(answer.value) : reject(answer.error))),
        );
      });
    });
  }

  #travel(arrive: () => void): void {
    const { random, network } = this.#world;
    const isLost = this.isCutOff || random() * 100 < network.lossPercent;
    const delayMs = Math.floor(random() * network.delayMs);
    if (!isLost) this.#world.schedule(delayMs, arrive);
  }
}

function attempt<T>(act: () => T): { readonly value: T } | { readonly error: Error } {
  try {
    return { value: act() };
  } catch (error) {
    return { error: error instanceof Error ? error : new ServiceError('UNKNOWN', String(error)) };
  }
}

/** Numbers that follow from a seed alone (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
