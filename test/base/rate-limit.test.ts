import { expect } from 'chai';
import fc from 'fast-check';
import { RateLimit } from '../../lib/base/rate-limit.js';

describe('RateLimit', () => {
  it('lets a burst pass, then as many as the rate gives, and says when the next may', () => {
    let nowMs = 500;
    const limit = new RateLimit({ perSecond: 4, burst: 3, clock: { monotonicMs: () => nowMs } });
    const take = (): number[] => [limit.take(), limit.take(), limit.take(), limit.take()];
    expect(take()).to.deep.equal([0, 0, 0, 250]);
    nowMs += 249;
    expect(limit.take()).to.equal(1);
    nowMs += 1;
    expect([limit.take(), limit.take()]).to.deep.equal([0, 250]);
    nowMs += 3_600_000;
    expect(take(), 'no more than a burst after a pause').to.deep.equal([0, 0, 0, 250]);
  });

  it('gives in any time no more than the burst and the rate, and what it promises', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 1000, noNaN: true }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 100 }),
        (perSecond, burst, pauses) => {
          let nowMs = 0;
          let passed = 0;
          const limit = new RateLimit({ perSecond, burst, clock: { monotonicMs: () => nowMs } });
          for (const pause of pauses) {
            nowMs += pause;
            const waitMs = limit.take();
            if (waitMs === 0) passed += 1;
            else {
              expect(waitMs).to.be.at.most(1000 / perSecond + 1e-6);
              nowMs += waitMs;
              const restMs = limit.take();
              expect(restMs, 'what rounding leaves').to.be.at.most(1e-6);
              if (restMs === 0) passed += 1;
            }
          }
          expect(passed).to.be.at.most(burst + (nowMs / 1000) * perSecond + 1e-6);
        },
      ),
    );
  });
});
