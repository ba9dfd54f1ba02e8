/**
 * Measures the service on the embedded agent: `npm run bench -- [figures…] [flags of the agent…]`.
 *
 * Agent, service and this client share the machine, so figures compare only within one run. By default the agent costs
 * what a container engine does.
 */
import { cpus, totalmem } from 'node:os';
import { formatFigures } from './figures.js';
import type { Figure } from './figures.js';
import { largeFiles } from './large-files.js';
import { MEASURES } from './measures.js';
import { Stack } from './stack.js';

const CONTAINER_COSTS = ['--exec-delay', '60ms', '--start-delay', '500ms'];

/** Takes minutes and gigabytes, so it is measured only where it is named. */
const ON_REQUEST: typeof MEASURES = { 'large-files': largeFiles };
const ALL = { ...MEASURES, ...ON_REQUEST };

const given = process.argv.slice(2);
const firstFlag = given.findIndex((argument) => argument.startsWith('--'));
const names = firstFlag < 0 ? given : given.slice(0, firstFlag);
const agent = firstFlag < 0 ? CONTAINER_COSTS : given.slice(firstFlag);
const unknown = names.filter((name) => !(name in ALL));
if (unknown.length > 0) {
  console.error(`there is no figure ${unknown.join(', ')}; there are ${Object.keys(ALL).join(', ')}`);
  process.exitCode = 1;
} else {
  const [cpu] = cpus();
  await using stack = await Stack.open({ agent, pool: 10 });
  console.log(
    `${cpus().length} × ${cpu?.model.trim() || 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ` +
      `Node.js ${process.versions.node}, ${stack.driver} driver, agent flags: ${agent.join(' ') || 'none'}\n`,
  );
  const figures: Figure[] = [];
  for (const [name, measure] of Object.entries(ALL)) {
    if (names.includes(name) || (names.length === 0 && name in MEASURES))
      figures.push(...(await measure(stack)));
  }
  console.log(formatFigures(figures));
}
