import { expect } from 'chai';
import type { Counts, State } from '../../lib/runners/state.js';
import { countOf, NO_COUNTS } from '../../lib/runners/state.js';

/** The counts that a pool keeps along are those of its members. */
export function assertCounts(state: State): void {
  for (const [id, pool] of state.pools) {
    const counts: Record<keyof Counts, number> = { ...NO_COUNTS };
    for (const runner of state.members.get(id)?.values() ?? []) counts[countOf(runner, pool.stored)] += 1;
    expect(pool.counts).to.deep.equal(counts);
  }
}
