import { runAgent } from '../../../lib/dev-agent/command.js';

/** The agent as a process of its own, for tests that kill it. */
const { stdout, stderr, stdin } = process;
process.exitCode = await runAgent(process.argv.slice(2), { stdout, stderr, stdin, signals: process });
