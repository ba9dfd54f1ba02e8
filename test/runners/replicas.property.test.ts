import { expect } from 'chai';
import fc from 'fast-check';
import { SHARED_KINDS, SharedRun } from '../support/shared-run.js';

const number = fc.noBias(fc.integer({ min: 0, max: 60 }));
const happening = fc.tuple(
  fc.noBias(fc.integer({ min: 0, max: 1 })),
  fc.noBias(fc.integer({ min: 0, max: SHARED_KINDS - 1 })),
  number,
  number,
);
const happenings = fc.array(happening, { maxLength: 120, size: 'max' });

describe('the reconcilers of two replicas on one Nomad, whatever the order of what they do and hear', () => {
  it('never hand a runner to two clients, purge one that the other has, or go on with one that they know is lost', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), happenings, (size, list) => {
        const run = new SharedRun(size);
        list.forEach((each) => run.happen(each));
      }),
      { numRuns: 200 },
    );
  });

  it('agree with Nomad and with each other in the end, with the pool full', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4 }), happenings, (size, list) => {
        const run = new SharedRun(size);
        list.forEach((each) => run.happen(each));
        run.comeToRest();
        for (const side of run.sides) {
          expect(side.busy).to.equal(0);
          const members = side.members();
          expect(members.map(({ id }) => id)).to.have.members([...run.truth.jobs.keys()]);
          for (const { id, phase } of members) {
            const used = run.truth.jobs.get(id)?.used;
            const expected = used ? (used.owner === side.name ? 'used' : 'foreign') : 'idle';
            expect(phase.name, `${side.name}: ${id}`).to.equal(expected);
          }
          expect(members.filter(({ phase }) => phase.name === 'idle')).to.have.length(size);
        }
      }),
      { numRuns: 200 },
    );
  });
});
