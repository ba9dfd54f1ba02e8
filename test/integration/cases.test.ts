import { once } from 'node:events';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { expect } from 'chai';
import { skipWithoutDriver } from '../support/needs.js';
import { TestService } from '../support/test-service.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const CASES = path.join(ROOT, 'test/fixtures/cases/cases.mjs');
const COUNT = 35;
const POOL = 10;

/** Runs the cases in a process of their own and resolves with the lines that it printed. */
async function runCases(url: string): Promise<string[]> {
  const child = spawn(process.execPath, [CASES, url, '0'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  await once(child, 'close');
  return printed.trim().split('\n');
}

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
      ).to.deep.equal([`${COUNT} passed, 0 failed`]);
    });
  }
});
