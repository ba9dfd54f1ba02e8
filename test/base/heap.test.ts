import { expect } from 'chai';
import fc from 'fast-check';
import { Heap } from '../../lib/base/heap.js';

describe('Heap', () => {
  it('gives what was added in order, whatever comes between', () => {
    const steps = fc.array(fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }));
    fc.assert(
      fc.property(steps, (numbers) => {
        const heap = new Heap<number>((a, b) => a < b);
        let sorted: number[] = [];
        for (const number of numbers) {
          if (number === undefined) {
            const [first, ...rest] = sorted;
            expect(heap.first).to.equal(first);
            expect(heap.pop()).to.equal(first);
            sorted = rest;
          } else {
            heap.push(number);
            sorted = [...sorted, number].sort((a, b) => a - b);
          }
          expect(heap.size).to.equal(sorted.length);
        }
        expect(sorted.map(() => heap.pop())).to.deep.equal(sorted);
        expect(heap.first).to.equal(undefined);
      }),
    );
  });
});
