/**
 * Measures the service on the embedded agent: `npm run bench -- --help`; docs/benchmarks.md tells how to read it.
 *
 * Agent, services, runners and this client share the machine, so figures compare only within one run.
 */
import { writeFileSync } from 'node:fs';
import type { Figure } from './figures.js';
import { formatByScale, formatFigures } from './figures.js';
import type { Verdict } from './limits.js';
import { formatVerdicts, judge } from './limits.js';
import { describeLoad, describeMachine, thisMachine } from './machine.js';
import { ALONE, MEASURES, ON_REQUEST } from './measures/all.js';
import type { Scale } from './measures/measure.js';
import { FULL, QUICK } from './measures/measure.js';
import type { BenchOptions } from './options.js';
import { parseOptions, USAGE } from './options.js';
import { Stack } from './stack.js';

async function measure(options: BenchOptions): Promise<void> {
  const machine = thisMachine();
  console.log(`${describeMachine(machine)}\n`);
  const scale = options.quick ? QUICK : FULL;
  const { figures, setting } = await measureOnStack(options, scale);
  const alone: Figure[] = [];
  for (const [name, each] of Object.entries(ALONE)) {
    if (!options.figures.includes(name)) continue;
    console.error(`measuring ${name} …`);
    alone.push(...(await each(options, scale)));
  }
  if (figures.length > 0) console.log(`${setting}\n\n${formatFigures(figures)}`);
  if (alone.length > 0) console.log(`\n${formatByScale(alone)}\n\n${describeLoad()} at the end`);
  const all = [...figures, ...alone];
  const verdicts = options.check ? judge(all) : [];
  if (options.check) console.log(`\n${formatVerdicts(verdicts)}`);
  if (verdicts.some(({ holds }) => holds === false)) process.exitCode = 1;
  if (options.json !== undefined) {
    writeJson(options.json, { machine, setting, options, figures: all, verdicts });
  }
}

/** Measures what shares one set of processes; starts none where nothing of it is wanted. */
async function measureOnStack(
  { agent, pool, profiles, logs, figures: names }: BenchOptions,
  scale: Scale,
): Promise<{ readonly figures: readonly Figure[]; readonly setting: string }> {
  const wanted = Object.entries({ ...MEASURES, ...ON_REQUEST }).filter(([name]) => names.includes(name));
  if (wanted.length === 0) return { figures: [], setting: '' };
  const figures: Figure[] = [];
  await using stack = await Stack.open({ agent, pool, profiles, logs, quietMs: scale.quietMs });
  for (const [name, each] of wanted) {
    console.error(`measuring ${name} …`);
    figures.push(...(await each(stack, scale)));
  }
  const flags = agent.join(' ') || 'none';
  return { figures, setting: `${stack.driver} driver, agent flags: ${flags}, pools of ${pool}` };
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
