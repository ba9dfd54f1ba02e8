import { parseArgs } from 'node:util';
import { parseGoDuration } from './fields.js';
import type { DriverName } from './drivers.js';
import { DRIVER_NAMES } from './drivers.js';
import { nsToMs } from './time.js';

/** What the command line asks of the agent. */
export interface AgentArguments {
  readonly help: boolean;
  readonly port: number;
  /** Undefined takes the best that the machine can run. */
  readonly driver: DriverName | undefined;
  readonly execDelayMs: number;
  readonly startDelayMs: number;
  readonly maxStarts: number | undefined;
  readonly maxExecsOpening: number | undefined;
  /** Beside `default`. */
  readonly namespaces: readonly string[];
  /** End as soon as standard input does. */
  readonly diesWithParent: boolean;
}

/** The command line cannot be understood. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
}

export const USAGE = `usage: serai agent [flags]

A small server that speaks the part of Nomad's HTTP API that the service uses, on loopback only, with its
state in memory. For development, tests and demonstrations.

  --port N             port to listen on (4646); 0 takes a free one
  --driver NAME        how tasks run: ${DRIVER_NAMES.join(', ')}; without it the first of these that this machine
                       can run, but never simulated
  --exec-delay TIME    what opening an exec costs, such as 60ms (0)
  --start-delay TIME   what starting a task costs, such as 500ms (0)
  --max-starts N       tasks that are started at once (no bound)
  --max-execs-opening N
                       execs that are opened at once, each for --exec-delay; the others wait (no bound)
  --namespace NAME     one more namespace beside default; may be given more than once
  --die-with-parent    end as soon as standard input is closed
  --help               show this text
`;

/** Throws ArgumentError, which names the flag, what was given and what was expected. */
export function parseArguments(args: readonly string[]): AgentArguments {
  const { values } = parse(args);
  return {
    help: values.help,
    port: wholeNumber('--port', values.port, 65_535),
    driver: values.driver === undefined ? undefined : driverName(values.driver),
    execDelayMs: time('--exec-delay', values['exec-delay']),
    startDelayMs: time('--start-delay', values['start-delay']),
    maxStarts: bound('--max-starts', values['max-starts']),
    maxExecsOpening: bound('--max-execs-opening', values['max-execs-opening']),
    namespaces: values.namespace.map(namespaceName),
    diesWithParent: values['die-with-parent'],
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', default: false },
        port: { type: 'string', default: '4646' },
        driver: { type: 'string' },
        'exec-delay': { type: 'string', default: '0' },
        'start-delay': { type: 'string', default: '0' },
        'max-starts': { type: 'string' },
        'max-execs-opening': { type: 'string' },
        namespace: { type: 'string', multiple: true, default: [] },
        'die-with-parent': { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new ArgumentError(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(flag: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw new ArgumentError(`${flag} takes a whole number up to ${max}, not ${JSON.stringify(text)}`);
}

function bound(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = wholeNumber(flag, text, 1_000_000);
  if (value > 0) return value;
  throw new ArgumentError(`${flag} takes a number above 0`);
}

/** What Nomad takes for a name. */
function namespaceName(text: string): string {
  if (/^[A-Za-z0-9-]{1,128}$/.test(text)) return text;
  throw new ArgumentError(
    `--namespace takes up to 128 letters, digits and hyphens, not ${JSON.stringify(text)}`,
  );
}

function time(flag: string, text: string): number {
  const ns = parseGoDuration(text);
  if (ns !== undefined) return nsToMs(ns);
  throw new ArgumentError(`${flag} takes a time such as 60ms or 1.5s, not ${JSON.stringify(text)}`);
}

function driverName(text: string): DriverName {
  const name = DRIVER_NAMES.find((known) => known === text);
  if (name) return name;
  throw new ArgumentError(`--driver takes one of ${DRIVER_NAMES.join(', ')}, not ${JSON.stringify(text)}`);
}
