import { expect } from 'chai';
import { CASES_COUNT, runCases } from '../support/cases.js';
import { skipWithoutDriver } from '../support/needs.js';
import { TestService } from '../support/test-service.js';

const POOL = 10;

/** Behaviour that clients of the API rely on, the same on both paths. */
describe('The cases of the API', function () {
  this.timeout(600_000);

  for (const warm of ['on', 'off']) {
    it(`all pass with warm sessions ${warm}`, async function () {
      let opened: TestService;
      try {
        opened = await TestService.open({ SERAI_EXECUTION_WARM: warm }, 'sandbox');
      } catch (error) {
        return skipWithoutDriver(this, error);
      }
      await using place = opened;
      await place.client.openPool(POOL);
      const lines = await runCases(place.service.url);
      expect(
        lines.filter((line) => !line.startsWith('ok ')),
        lines.join('\n'),
      ).to.deep.equal([`${CASES_COUNT} passed, 0 failed`]);
    });
  }
});
