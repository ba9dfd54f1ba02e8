/**
 * `npm run chaos -- --seconds N --seed S`: see docs/chaos.md. Ends with 0 where all invariants held, with 1 where one did
 * not, and with 2 for arguments that it cannot understand.
 */
import { parseArgs } from 'node:util';
import { orAbort } from '../../lib/base/abort.js';
import { messageOf, ServiceError } from '../../lib/base/errors.js';
import { commandLineOf, descendantsOf, isAlive } from '../support/program.js';
import { runChaos } from './run.js';
import { ChaosStack } from './stack.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    clients: { type: 'string', default: '6' },
    logs: { type: 'boolean', default: false },
  },
});
const [seconds, seed, clients] = [values.seconds, values.seed, values.clients].map(Number);
if (!isWhole(seconds) || !isWhole(seed) || !isWhole(clients)) {
  console.error('chaos: --seconds, --seed and --clients take whole numbers');
  process.exit(2);
}

/** What goes beyond the run: filling pools before it, looking at everything after it. */
const REST_MS = 180_000;
const ending = new AbortController();
const end = (why: string): void => ending.abort(new ServiceError('STOPPED', why));
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => end(`ended by ${name}`));
setTimeout(() => end('it did not come to its end'), seconds * 1000 + REST_MS).unref();
const stack = await ChaosStack.open(values.logs);
console.log(
  `chaos: ${seconds} s, seed ${seed}, ${clients} clients${values.logs ? `, logs in ${stack.folder}` : ''}`,
);
try {
  const history = await orAbort(runChaos(stack, { seconds, seed, clients }), ending.signal);
  console.log(history.summary());
  for (const violation of history.violations) {
    console.log(`\nVIOLATION (seed ${seed}): ${violation.message}\n${history.timeLine(violation.runnerId)}`);
  }
  console.log(
    history.violations.length === 0 ? 'all invariants held' : `${history.violations.length} violations`,
  );
  if (history.violations.length > 0) process.exitCode = 1;
} catch (error) {
  console.log(`chaos (seed ${seed}): ${messageOf(error)}`);
  process.exitCode = 1;
} finally {
  const tasks = [stack.agent.pid, ...descendantsOf(stack.agent.pid)];
  await stack[Symbol.asyncDispose]();
  const left = tasks.filter(isAlive);
  if (left.length > 0) {
    console.log(
      `VIOLATION: processes of tasks are left: ${left.map((pid) => commandLineOf(pid).join(' ')).join('; ')}`,
    );
    process.exitCode = 1;
  }
  // Clients of a run that was cut short still wait for answers.
  process.exit();
}

function isWhole(value: number | undefined): value is number {
  return value !== undefined && Number.isSafeInteger(value) && value >= 0;
}
