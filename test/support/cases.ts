import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const CASES = path.join(ROOT, 'test/fixtures/cases/cases.mjs');

/** How many there are. */
export const CASES_COUNT = 35;

/** Runs the cases of the API in a process of their own and resolves with the lines that it printed. */
export async function runCases(url: string): Promise<string[]> {
  const child = spawn(process.execPath, [CASES, url, '0'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  await once(child, 'close');
  return printed.trim().split('\n');
}
