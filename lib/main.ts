#!/usr/bin/env node
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { runCli } from './cli/cli.js';

const { env, stdout, stderr } = process;
// Set, not called: output that is still on its way is written, and whatever is left alive shows.
process.exitCode = await runCli(process.argv.slice(2), {
  env,
  cwd: process.cwd(),
  program: fileURLToPath(import.meta.url),
  stdout,
  stderr,
  signals: process,
});
