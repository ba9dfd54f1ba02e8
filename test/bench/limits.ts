/**
 * What the figures have to be, on the embedded agent with `--exec-delay 60ms --start-delay 500ms` and with service, agent,
 * runners and client on one machine with two cores. docs/benchmarks.md has the same list with what was measured.
 */
import type { Figure } from './figures.js';
import { formatNumber, median } from './figures.js';
import type { PartyName } from './stack.js';

type Read = (name: string, party?: PartyName) => number;

interface Limit {
  readonly what: string;
  readonly unit: Figure['unit'];
  readonly value: (of: Read) => number;
  readonly most?: number;
  readonly least?: number;
}

/** What is no slower in sum may still be measured to be, by so much. */
const SAME_RATE = 0.95;
/** What costs the same for each runner may be measured to cost so many times as much among more of them. */
const LINEAR = 1.5;
const POST = 'by POST and socket';
const SESSION = 'over session sockets';
const SOAK = '20000 commands over 20 runners';

function overFloor(of: Read, name: string): number {
  return of(name) - of(name, 'floor');
}

const LIMITS: readonly Limit[] = [
  {
    what: 'next execute, first output, above the floor',
    unit: 'ms',
    value: (of) => overFloor(of, 'next execute, first output'),
    most: 4.5,
  },
  {
    what: 'next execute, exit, above the floor',
    unit: 'ms',
    value: (of) => overFloor(of, 'next execute, exit'),
    most: 5,
  },
  {
    what: 'claim and first execute, exit, above the floor of an execute',
    unit: 'ms',
    value: (of) => of('claim and first execute, exit') - of('next execute, exit', 'floor'),
    most: 12,
  },
  {
    what: 'execute over a session socket, exit',
    unit: 'ms',
    value: (of) => of('execute over a session socket, exit'),
    most: 5.5,
  },
  {
    what: 'next execute, exit: cold by warm',
    unit: '',
    value: (of) => of('next execute, exit', 'cold') / of('next execute, exit'),
    least: 12,
  },
  { what: `8 at once ${POST}`, unit: '/s', value: (of) => of(`8 at once ${POST}, rate`), least: 160 },
  { what: `8 at once ${SESSION}`, unit: '/s', value: (of) => of(`8 at once ${SESSION}, rate`), least: 280 },
  ...[POST, SESSION].map((way) => ({
    what: `64 at once by 8 at once, ${way}`,
    unit: '' as const,
    value: (of: Read) => of(`64 at once ${way}, rate`) / of(`8 at once ${way}, rate`),
    least: SAME_RATE,
  })),
  {
    what: `processor time of the service ${POST}, above the floor`,
    unit: 'ms',
    value: (of) => overFloor(of, `8 at once ${POST}, processor time of the service`),
    most: 1,
  },
  {
    what: `processor time of the service ${SESSION}`,
    unit: 'ms',
    value: (of) => of(`8 at once ${SESSION}, processor time of the service`),
    most: 0.9,
  },
  {
    what: 'processes started for a command until its exit is known',
    unit: '',
    value: (of) => of('processes started for a command until its exit is known'),
    most: 4,
  },
  { what: 'copy of 1 MB', unit: 'ms', value: (of) => of('copy of 1 MB and a small file'), most: 40 },
  { what: 'list', unit: 'ms', value: (of) => of('list'), most: 10 },
  { what: 'download of 1 MB', unit: 'ms', value: (of) => of('download of 1 MB'), most: 30 },
  { what: 'keystroke echo', unit: 'ms', value: (of) => of('keystroke echo'), most: 1.5 },
  { what: '30 MB of output', unit: 'MB/s', value: (of) => of('30 MB of output'), least: 18 },
  {
    what: 'memory of the service for an idle runner',
    unit: 'KB',
    value: (of) =>
      Math.max(
        of('memory of the service for an idle runner, resident'),
        of('memory of the service for an idle runner, live'),
      ),
    most: 100,
  },
  { what: `${SOAK}, wrong answers`, unit: '', value: (of) => of(`${SOAK}, wrong answers`), most: 0 },
  { what: `${SOAK}, exec sockets left`, unit: '', value: (of) => of(`${SOAK}, exec sockets left`), most: 0 },
  { what: `${SOAK}, growth of the service`, unit: 'MB', value: (of) => of(`${SOAK}, growth`), most: 2 },
];

const MANY = '10000 runners';
const FLOOD = 'events at once';

/** What has to hold with very many runners; see measures/scale.ts. */
const SCALE_LIMITS: readonly Limit[] = [
  ...atScale('in sync after a restart', 'ms', { most: 10_000 }),
  ...atScale('resident memory once in sync', 'MB', { most: 400 }),
  ...atScale('resident memory after the claims', 'MB', { most: 400 }),
  ...atScale('claims at 100 a second, p99', 'ms', { most: 25 }),
  ...atScale('claims at 100 a second, refused', '', { most: 0 }),
  ...atScale('requests of a recovery beside those for used runners', '', { most: 120 }),
  ...atScale(FLOOD, '', { least: 20_000 }),
  ...atScale(`${FLOOD}, streams opened anew`, '', { most: 0 }),
  ...atScale(`${FLOOD}, listings`, '', { most: 0 }),
  ...[
    'processor time of a recovery for each runner',
    'processor time of the service for a claim and a refill',
    `${FLOOD}, processor time of the service for each`,
  ].map((what) => ({
    what: `${what}: 10000 runners by 3000`,
    unit: '' as const,
    value: (of: Read) => of(`${what}, ${MANY}`, 'cold') / of(`${what}, 3000 runners`, 'cold'),
    most: LINEAR,
  })),
];

function atScale(
  what: string,
  unit: Figure['unit'],
  bound: { readonly most: number } | { readonly least: number },
): Limit[] {
  const name = `${what}, ${MANY}`;
  return [{ what: name, unit, value: (of) => of(name, 'cold'), ...bound }];
}

export interface Verdict {
  readonly what: string;
  readonly limit: string;
  readonly measured: string;
  readonly holds: boolean | 'not measured';
}

export function judge(figures: readonly Figure[]): Verdict[] {
  const of: Read = (name, party = 'warm') => median(figures, name, party);
  return [...LIMITS, ...SCALE_LIMITS].map(({ what, unit, value, most, least }) => {
    const measured = value(of);
    const limit =
      most === undefined ? `≥ ${formatNumber(least ?? 0, unit)}` : `≤ ${formatNumber(most, unit)}`;
    if (Number.isNaN(measured)) return { what, limit, measured: '', holds: 'not measured' };
    const holds = measured <= (most ?? Infinity) && measured >= (least ?? -Infinity);
    return { what, limit, measured: formatNumber(measured, unit), holds };
  });
}

export function formatVerdicts(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ what, limit, measured, holds }) => {
    const answer = holds === 'not measured' ? holds : holds ? 'holds' : '**does not hold**';
    return `| ${what} | ${limit} | ${measured} | ${answer} |`;
  });
  return ['| limit | | measured | |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
