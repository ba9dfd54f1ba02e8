import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect } from 'chai';
import { examplesOf, patternOf } from '../support/page-examples.js';
import { TestService } from '../support/test-service.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const TOKEN = 'the-token-of-the-page';

/** Runs a module and resolves with all that it prints. */
async function run(script: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: ROOT, // where its packages are found
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (told += text));
  }
  await once(child, 'close');
  return told;
}

describe('docs/websocket.md', function () {
  this.timeout(60_000);

  it('shows what the service does', async () => {
    await using opened = await TestService.open({ SERAI_AUTH_TOKEN: TOKEN });
    const { client } = opened;
    await client.openPool(1);
    const at = { api: client.base, token: TOKEN, runnerId: await client.claim() };
    const given = Object.entries(at).map(([name, value]) => `const ${name} = ${JSON.stringify(value)};\n`);
    const shown = examplesOf('websocket.md', 'js').filter(({ output }) => output !== undefined);
    expect(shown).to.have.length(2);
    for (const { script, output = '' } of shown) {
      expect((await run(given.join('') + script)).trim(), script).to.match(patternOf(output));
    }
  });
});
