import { expect } from 'chai';
import fc from 'fast-check';
import { currentOf, isFit } from '../../lib/runners/allocation-record.js';
import { KINDS, Run } from '../support/reconciled-run.js';

const number = fc.noBias(fc.integer({ min: 0, max: 60 }));
const happenings = fc.array(fc.tuple(fc.noBias(fc.integer({ min: 0, max: KINDS - 1 })), number, number), {
  maxLength: 120,
  size: 'max',
});

describe('reconcile, whatever the order, loss and repetition of what is heard', () => {
  it('never hands a runner to two clients', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), happenings, (size, list) => {
        const run = new Run(size);
        for (const happening of list) {
          run.happen(happening);
          for (const [id, times] of run.handed) expect(times, id).to.equal(1);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('ends in the truth of the last listing, with the pool full', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4 }), happenings, (size, list) => {
        const run = new Run(size);
        list.forEach((happening) => run.happen(happening));
        run.comeToRest();
        expect(run.unanswered).to.equal(0);
        const members = run.members();
        expect(new Set(members.map(({ id }) => id))).to.deep.equal(new Set(run.truth.jobs.keys()));
        for (const runner of members) {
          const newest = run.truth.newest(runner.id);
          const record = currentOf(runner.allocations);
          expect(record?.id).to.equal(newest?.id);
          expect(record && isFit(record, () => false)).to.equal(true);
          expect(runner.phase.name).to.equal(run.truth.jobs.get(runner.id)?.used ? 'used' : 'idle');
        }
        const idle = members.filter((runner) => runner.phase.name === 'idle');
        expect(idle).to.have.length(size);
      }),
      { numRuns: 400 },
    );
  });

  it('changes nothing when old events and the same listing are heard again', () => {
    fc.assert(
      fc.property(happenings, fc.integer(), (list, seed) => {
        const run = new Run(2);
        list.forEach((happening) => run.happen(happening));
        run.comeToRest();
        const before = run.outline();
        const old = run.truth.said.map((observation, n) => ({ observation, order: Math.sin(seed + n) }));
        old.sort((a, b) => a.order - b.order);
        for (const { observation } of old) run.observe(observation);
        run.settleInVain();
        run.observe({ kind: 'listing', listing: run.truth.listing(run.state.sequence) });
        expect(run.outline()).to.deep.equal(before);
        expect(run.unanswered).to.equal(0);
      }),
      { numRuns: 200 },
    );
  });
});
