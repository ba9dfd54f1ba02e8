import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { anEnvironment } from './environments.js';
import { Side } from './side.js';
import { Truth } from './truth.js';

/** How many kinds of things can happen. */
export const SHARED_KINDS = 16;

export type SharedHappening = readonly [side: number, kind: number, a: number, b: number];

const NAMES = ['a', 'b'] as const;

/**
 * Two replicas' reconcilers and one Nomad with check-and-set. Every request to Nomad is a step of its own, and so is the
 * news of its answer, so anything happens between any two of them: to the other replica, to Nomad, and to what is heard.
 */
export class SharedRun {
  readonly truth = new Truth();
  readonly sides: readonly Side[];
  readonly size: number;
  /** How often a claim has handed out each runner, by whichever replica. */
  readonly #handed = new Map<RunnerId, number>();
  #leader = 0;

  constructor(size: number) {
    this.size = size;
    this.truth.setTemplate(anEnvironment({ prewarmingPoolSize: size }));
    this.sides = NAMES.map(
      (name) => new Side(name, this.truth, (id) => this.#handed.set(id, (this.#handed.get(id) ?? 0) + 1)),
    );
    this.#vote();
    this.comeToRest();
  }

  happen([number, kind, a, b]: SharedHappening): void {
    const side = this.sides[number % 2];
    if (!side) return;
    const { truth } = this;
    const allocations = [...truth.allocations.values()].filter(({ jobId }) =>
      truth.jobs.has(jobId as RunnerId),
    );
    const allocation = allocations[a % allocations.length];
    switch (kind) {
      case 0: // any event is heard, again or for the first time
      case 1:
        side.hear(truth.said[a % truth.said.length]);
        break;
      case 2: // the latest are heard in order
        truth.said.slice(-(1 + (a % 6))).forEach((event) => side.hear(event));
        break;
      case 3:
      case 4:
      case 5: // a request reaches Nomad, or its answer the replica
        side.goOn(a, b);
        break;
      case 6:
      case 7:
        side.claim();
        break;
      case 8:
        side.release(a, b % 2 ? 'returned' : 'inactive');
        break;
      case 9: // a request comes for a runner of the other one
        side.serve(a);
        break;
      case 10:
        side.list(b % 2 === 0);
        break;
      case 11:
        if (allocation?.clientStatus === 'pending') truth.run(allocation.id);
        break;
      case 12:
        if (allocation?.clientStatus !== 'running') break;
        if (b % 3 === 0) truth.restart(allocation.id);
        if (b % 3 === 1) truth.change(allocation.id, { clientStatus: 'failed' });
        break;
      case 13:
        side.restart();
        break;
      case 14: // who leads, and whom each takes for dead, rightly or not
        this.#leader = b % 3;
        side.view(this.#leader === number % 2, a % 2 === 0 ? NAMES : [side.name]);
        if (this.#leader === number % 2) this.sides[(number + 1) % 2]?.view(false, NAMES);
        break;
      case 15:
        for (const each of this.sides) each.wait(b * 10_000);
    }
    this.check();
  }

  /** Each runner is one client's, and whoever has it knows of no other owner. */
  check(): void {
    for (const [id, times] of this.#handed) expect(times, id).to.equal(1);
    for (const side of this.sides) {
      for (const { id, phase, written } of side.members()) {
        if (phase.name !== 'used') continue;
        expect(written.used?.owner, id).to.equal(side.name);
        const job = this.truth.jobs.get(id);
        if (job && job.used?.owner !== side.name) expect(written.index, id).to.be.lessThan(job.writtenAt);
      }
    }
  }

  /** Both live, one leads; all is answered, heard and listed. */
  comeToRest(): void {
    this.#leader %= 2;
    this.#vote();
    for (let round = 0; round < 40; round += 1) {
      for (const side of this.sides) side.settle();
      for (const { id, clientStatus, desiredStatus } of [...this.truth.allocations.values()]) {
        if (clientStatus === 'pending' && desiredStatus === 'run') this.truth.run(id);
      }
      for (const side of this.sides) {
        side.list(true);
        side.wait(35_000);
      }
    }
    for (const side of this.sides) {
      side.settle();
      side.list(true);
    }
    this.check();
  }

  #vote(): void {
    // The one that does not lead learns of it first: there are never two.
    for (const [n, side] of this.sides.entries()) if (n !== this.#leader) side.view(false, NAMES);
    this.sides[this.#leader]?.view(true, NAMES);
  }
}
