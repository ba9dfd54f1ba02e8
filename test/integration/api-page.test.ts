import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { needs, program } from '../support/needs.js';
import { SandboxBench } from '../dev-agent/support/sandbox.js';
import type { Example } from '../support/page-examples.js';
import { examplesOf, patternOf } from '../support/page-examples.js';
import { TestService } from '../support/test-service.js';

const MARK = '--- end of an example ---';
const TOKEN = 'the-token-of-the-page';

/** Runs all examples in one shell and resolves with the output of each. */
async function run(url: string, all: readonly Example[]): Promise<string[]> {
  const script = all.map((each) => `${each.script}echo; echo '${MARK}'\n`).join('');
  const child = spawn('sh', ['-eu', '-c', script.replace('http://127.0.0.1:7200', url)], {
    env: { ...process.env, TOKEN },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (told += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`the examples ended with ${code}:\n${told}\n${errors}`);
  return told.split(`${MARK}\n`).slice(0, -1);
}

describe('docs/api.md', function () {
  this.timeout(60_000);

  it('shows what the service does', async function () {
    needs(this, program('curl'));
    const bench = await SandboxBench.open(this);
    try {
      await using opened = await TestService.open({ SERAI_AUTH_TOKEN: TOKEN }, bench.driver);
      const all = examplesOf('api.md', 'sh');
      expect(all.length).to.be.greaterThan(5);
      const outputs = await run(opened.service.url, all);
      for (const [index, { script, output }] of all.entries()) {
        if (output !== undefined) expect(outputs[index]?.trim(), script).to.match(patternOf(output));
      }
    } finally {
      await bench.close();
    }
  });
});
