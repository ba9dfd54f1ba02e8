import { expect } from 'chai';
import { CASES_COUNT, runCases } from '../support/cases.js';
import { skipWithoutDriver } from '../support/needs.js';
import type { ReplicaHere } from '../support/replicas.js';
import { Replicas } from '../support/replicas.js';

const POOL = 10;

describe('The cases of the API against two replicas behind a balancer', function () {
  this.timeout(600_000);

  for (const warm of ['on', 'off']) {
    it(`all pass with warm sessions ${warm}`, async function () {
      let opened: Replicas<ReplicaHere>;
      try {
        opened = await Replicas.here({ driver: 'sandbox', settings: { SERAI_EXECUTION_WARM: warm } });
      } catch (error) {
        return skipWithoutDriver(this, error);
      }
      await using replicas = opened;
      await replicas.member(0).client.openPool(POOL);
      await replicas.untilIdle(POOL);
      const lines = await runCases(replicas.balancer.url);
      expect(
        lines.filter((line) => !line.startsWith('ok ')),
        lines.join('\n'),
      ).to.deep.equal([`${CASES_COUNT} passed, 0 failed`]);
      const hops = replicas.members.map(
        ({ log }) => log.lines.filter(({ fields }) => fields['forwardedTo'] !== undefined).length,
      );
      // About half of all requests arrive at the one that does not have the runner.
      expect(Math.min(...hops)).to.be.greaterThan(5);
      expect(Math.max(...hops)).to.be.greaterThan(50);
    });
  }
});
