import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { needs } from '../../support/needs.js';
import { SandboxBench } from '../../dev-agent/support/sandbox.js';
import { TestService } from '../../support/test-service.js';

/** What the fuzzer may take; FUZZ_SECONDS=600 makes it a long run. */
const SECONDS = process.env['FUZZ_SECONDS'] ?? '40';
/** One that the fuzzer will not think of, so it deletes no runners that it is given. */
const ENVIRONMENT = 7_182_818;
const TOKEN = 'a-token-of-the-fuzzer';

/** Path of schemathesis; skips, with the reason, where it is not installed, and fails instead where CI should. */
function findSchemathesis(context: Mocha.Context): string {
  const script = path.resolve(import.meta.dirname, '../../../.scripts/fuzzer.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script, '--find'], { encoding: 'utf8' });
  needs(context, {
    isMet: status === 0,
    missing: 'schemathesis: npm run fuzzer (on Debian with python3-venv)',
  });
  return stdout.trim();
}

/** Runs the fuzzer against a service and resolves with its exit code and report. */
async function fuzz(
  program: string,
  url: string,
  runnerId: string,
): Promise<{ code: number; report: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'serai-fuzz-'));
  const config = path.join(import.meta.dirname, 'schemathesis.toml');
  const args = [
    ...['--config-file', config, 'run', `${url}/api/v1/openapi.json`, '--no-color'],
    ...['--max-time', SECONDS, '--header', `Poseidon-Token: ${TOKEN}`],
  ];
  const child = spawn(program, args, {
    cwd: folder, // it keeps files beside where it runs
    env: {
      ...process.env,
      PYTHONPATH: import.meta.dirname,
      PYTHONDONTWRITEBYTECODE: '1',
      RUNNER_ID: runnerId,
      ENVIRONMENT_ID: String(ENVIRONMENT),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let report = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (report += text));
  }
  const [code] = (await once(child, 'close')) as [number];
  await rm(folder, { recursive: true });
  return { code, report };
}

/** Sandboxes: the fuzzer writes and deletes files as root. */
describe('the API under schemathesis', function () {
  this.timeout(Number(SECONDS) * 1000 + 120_000);

  it('answers nothing that the OpenAPI document does not describe', async function () {
    const program = findSchemathesis(this);
    const bench = await SandboxBench.open(this);
    try {
      const settings = {
        SERAI_AUTH_TOKEN: TOKEN,
        SERAI_EXECUTION_PREPARED_TIMEOUT: '1',
        SERAI_SERVER_MAX_BODY_BYTES: '1048576',
      };
      await using opened = await TestService.open(settings, bench.driver);
      const { client, service, log } = opened;
      await client.openPool(4, ENVIRONMENT);
      const { code, report } = await fuzz(program, service.url, await client.claim(ENVIRONMENT));
      expect(code, report).to.equal(0);
      expect(report).to.match(/Tested: (1[5-9]|[2-9]\d)/);
      const faults = log.lines.filter(({ message }) => message === 'a request failed unexpectedly');
      expect(faults).to.deep.equal([]);
    } finally {
      await bench.close();
    }
  });
});
