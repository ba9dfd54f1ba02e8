/**
 * Flags of a command: what there is, what was given, and a hint where that is not the same.
 */
import { parseArgs } from 'node:util';
import { nearest } from '../config/keys.js';
import type { FlagValue } from '../config/sources.js';

export interface FlagSpec {
  /** What stands for the value in the help; absent for a switch. */
  readonly value?: string;
  /** May be given more than once. */
  readonly multiple?: true;
  readonly help: string;
}

export type FlagSpecs = Readonly<Record<string, FlagSpec>>;

/** The command line cannot be understood; the message says what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Given flags: the values of each, in order; a switch has one empty value. */
export type GivenFlags = ReadonlyMap<string, readonly string[]>;

/** Throws UsageError for anything that `specs` does not have. */
export function parseFlags(specs: FlagSpecs, args: readonly string[]): GivenFlags {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [name, { type: spec.value ? 'string' : 'boolean' } as const]),
  );
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') throw new UsageError(`${token.value} is not expected here`);
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    if (!spec) throw unknownFlag(token.rawName, specs);
    if (spec.value && token.value === undefined) throw new UsageError(`--${token.name} needs a value`);
    if (!spec.value && token.value !== undefined) throw new UsageError(`--${token.name} takes no value`);
    const before = given.get(token.name);
    if (before && !spec.multiple) throw new UsageError(`--${token.name} is given twice`);
    given.set(token.name, [...(before ?? []), token.value ?? '']);
  }
  return given;
}

function unknownFlag(rawName: string, specs: FlagSpecs): UsageError {
  const meant = nearest(
    rawName,
    Object.keys(specs).map((name) => `--${name}`),
  );
  return new UsageError(
    `there is no flag ${rawName}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
  );
}

/** Flags of every command that reads the configuration. */
export const CONFIG_FLAGS = {
  config: { value: 'FILE', help: 'configuration file (YAML); also SERAI_CONFIG' },
  host: { value: 'ADDRESS', help: 'address to listen on (127.0.0.1)' },
  port: { value: 'N', help: 'port to listen on (7200); 0 takes a free one' },
  'log-level': { value: 'LEVEL', help: 'error, warn, info or debug' },
  'log-format': { value: 'FORMAT', help: 'json or text' },
  set: {
    value: 'KEY=VALUE',
    multiple: true,
    help: 'any key of the configuration, see docs/configuration.md',
  },
} as const satisfies FlagSpecs;

const KEY_OF_FLAG = {
  host: 'server.host',
  port: 'server.port',
  'log-level': 'log.level',
  'log-format': 'log.format',
} as const;

/** The part of the given flags that sets keys of the configuration. */
export function configFlags(given: GivenFlags): FlagValue[] {
  const named = Object.entries(KEY_OF_FLAG).flatMap(([name, key]) =>
    (given.get(name) ?? []).map((text) => ({ flag: `--${name}`, key, text })),
  );
  const set = (given.get('set') ?? []).map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`--set takes KEY=VALUE, not ${JSON.stringify(pair)}`);
    return { flag: '--set', key: pair.slice(0, at), text: pair.slice(at + 1) };
  });
  return [...set, ...named];
}

/** Lines of help for flags. */
export function describeFlags(specs: FlagSpecs): string {
  const rows = Object.entries(specs).map(
    ([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ''}`, help] as const,
  );
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, help]) => `  ${left.padEnd(width)}  ${help}\n`).join('');
}
