/**
 * Measures the service on the embedded agent: `npm run bench -- --help`; docs/benchmarks.md tells how to read it.
 *
 * Agent, services, runners and this client share the machine, so figures compare only within one run.
 */
import { writeFileSync } from 'node:fs';
import type { Figure } from './figures.js';
import { formatFigures } from './figures.js';
import type { Verdict } from './limits.js';
import { formatVerdicts, judge } from './limits.js';
import { describeMachine, thisMachine } from './machine.js';
import { MEASURES, ON_REQUEST } from './measures/all.js';
import { FULL, QUICK } from './measures/measure.js';
import type { BenchOptions } from './options.js';
import { parseOptions, USAGE } from './options.js';
import { Stack } from './stack.js';

async function measure(options: BenchOptions): Promise<void> {
  const machine = thisMachine();
  const { agent, pool, profiles, logs } = options;
  const figures: Figure[] = [];
  const scale = options.quick ? QUICK : FULL;
  await using stack = await Stack.open({ agent, pool, profiles, logs, quietMs: scale.quietMs });
  const setting = `${stack.driver} driver, agent flags: ${agent.join(' ') || 'none'}, pools of ${pool}`;
  console.log(`${describeMachine(machine)}; ${setting}\n`);
  for (const [name, each] of Object.entries({ ...MEASURES, ...ON_REQUEST })) {
    if (!options.figures.includes(name)) continue;
    console.error(`measuring ${name} …`);
    figures.push(...(await each(stack, scale)));
  }
  console.log(formatFigures(figures));
  const verdicts = options.check ? judge(figures) : [];
  if (options.check) console.log(`\n${formatVerdicts(verdicts)}`);
  if (verdicts.some(({ holds }) => holds === false)) process.exitCode = 1;
  if (options.json !== undefined) writeJson(options.json, { machine, setting, options, figures, verdicts });
}

interface Report {
  readonly machine: unknown;
  readonly setting: string;
  readonly options: BenchOptions;
  readonly figures: readonly Figure[];
  readonly verdicts: readonly Verdict[];
}

function writeJson(file: string, report: Report): void {
  writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) console.log(USAGE);
  else await measure(options);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
