import { parseArgs } from 'node:util';
import { ALONE, MEASURES, ON_REQUEST } from './measures/all.js';

export const USAGE = `usage: npm run bench -- [figures…] [check] [options] [-- flags of the agent…]

figures: ${Object.keys(MEASURES).join(', ')};
         on request only: ${Object.keys({ ...ON_REQUEST, ...ALONE }).join(', ')}

  check           also compare with the limits; without figures, of all that have one. Exit code 1 where one does
                  not hold
  --json FILE     write machine, options, all samples and the limits there
  --cpu-prof DIR  write a processor profile of agent, services and floor there, each at its end
  --logs DIR      keep what agent and services logged there
  --pool N        idle runners of each service between the figures (10)
  --quick         as little as shows that it runs

The agent costs what a container engine does unless it gets other flags:
  npm run bench -- latency load -- --driver process --exec-delay 60ms
`;

const CONTAINER_COSTS = ['--exec-delay', '60ms', '--start-delay', '500ms'];

export interface BenchOptions {
  readonly help: boolean;
  readonly figures: readonly string[];
  readonly check: boolean;
  readonly json: string | undefined;
  readonly profiles: string | undefined;
  readonly logs: string | undefined;
  readonly pool: number;
  readonly quick: boolean;
  readonly agent: readonly string[];
}

/** Throws a sentence for whoever typed it. */
export function parseOptions(args: readonly string[]): BenchOptions {
  const end = args.indexOf('--');
  const { values, positionals } = parseArgs({
    args: end < 0 ? [...args] : args.slice(0, end),
    allowPositionals: true,
    options: {
      help: { type: 'boolean', default: false },
      json: { type: 'string' },
      'cpu-prof': { type: 'string' },
      logs: { type: 'string' },
      pool: { type: 'string', default: '10' },
      quick: { type: 'boolean', default: false },
    },
  });
  const check = positionals.includes('check');
  const named = positionals.filter((name) => name !== 'check');
  const known = { ...MEASURES, ...ON_REQUEST, ...ALONE };
  const unknown = named.filter((name) => !(name in known));
  if (unknown.length > 0) throw new Error(`there is no figure ${unknown.join(', ')}`);
  if (!/^[1-9]\d{0,3}$/.test(values.pool)) throw new Error('--pool takes a number above 0');
  return {
    help: values.help,
    figures: named.length > 0 ? named : [...Object.keys(MEASURES), ...(check ? ['soak', 'scale'] : [])],
    check,
    json: values.json,
    profiles: values['cpu-prof'],
    logs: values.logs,
    pool: Number(values.pool),
    quick: values.quick,
    agent: end < 0 ? CONTAINER_COSTS : args.slice(end + 1),
  };
}
