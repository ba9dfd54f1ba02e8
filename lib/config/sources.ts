/**
 * Where configuration comes from: a YAML file, environment variables, flags. Each becomes a layer, a partial nested
 * object that knows the name under which the operator gave each key, so that a fault can name it.
 *
 * Not here: what values are right (schema.ts, load.ts).
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseDocument } from 'yaml';
import { messageOf } from '../base/errors.js';
import type { ConfigFault } from './faults.js';
import type { ConfigKey } from './keys.js';
import { CONFIG_KEYS, isSection, nearest } from './keys.js';
import type { SectionSchema } from './key-schema.js';
import { CONFIG_SCHEMA } from './schema.js';
import { parseText } from './text.js';

export interface Layer {
  readonly values: Readonly<Record<string, unknown>>;
  /** How the operator gave a key: `port in serai.yaml`, `SERAI_SERVER_PORT`, `--port`. */
  givenAs(key: string): string;
  /** Where relative paths start. */
  readonly folder: string;
}

/** One flag of the command line that sets a key. */
export interface FlagValue {
  readonly flag: string;
  readonly key: string;
  readonly text: string;
}

/** Reads the YAML file. A file that cannot be read or parsed is a fault, and counts as empty. */
export function fileLayer(file: string, faults: ConfigFault[]): Layer {
  const layer = { folder: path.dirname(path.resolve(file)), givenAs: (key: string) => `${key} in ${file}` };
  let source: string;
  try {
    source = readFileSync(file, 'utf8');
  } catch (error) {
    faults.push({ key: file, expected: `a readable file (${messageOf(error)})` });
    return { ...layer, values: {} };
  }
  const document = parseDocument(source);
  for (const error of document.errors)
    faults.push({ key: file, expected: `YAML: ${firstLine(error.message)}` });
  if (document.errors.length > 0) return { ...layer, values: {} };
  const value: unknown = document.toJS();
  if (value === null) return { ...layer, values: {} };
  if (isRecord(value)) return { ...layer, values: withoutEmptySections(value, CONFIG_SCHEMA) };
  faults.push({ key: file, expected: 'sections with keys at the top of the file' });
  return { ...layer, values: {} };
}

/**
 * Reads `SERAI_*` and Nomad's own variables; an empty one counts as absent. Names that start with SERAI_ and mean
 * nothing are warned about, not refused: Kubernetes makes such variables for a service of that name.
 */
export function environmentLayer(
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
  warnings: string[],
): Layer {
  const given = new Map<string, string>();
  const values: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) {
    const variable = [key.variable, key.nomadVariable].find((name) => name !== undefined && env[name]);
    const text = variable === undefined ? undefined : env[variable];
    if (variable === undefined || text === undefined) continue;
    given.set(key.name, variable);
    setAt(values, key.path, parseText(key.schema, text));
  }
  const known = new Set(['SERAI_CONFIG', ...CONFIG_KEYS.map((key) => key.variable)]);
  for (const name of Object.keys(env).filter((each) => each.startsWith('SERAI_') && !known.has(each))) {
    const meant = nearest(name, [...known]);
    warnings.push(`${name} is no variable of Serai${meant === undefined ? '' : `; did you mean ${meant}?`}`);
  }
  return { values, folder, givenAs: (key) => given.get(key) ?? key };
}

/** Reads flags; the last one of a key wins. An unknown key of `--set` is a fault. */
export function flagLayer(flags: readonly FlagValue[], folder: string, faults: ConfigFault[]): Layer {
  const given = new Map<string, string>();
  const values: Record<string, unknown> = {};
  for (const { flag, key: name, text } of flags) {
    const key = CONFIG_KEYS.find((each) => each.name === name);
    if (!key) {
      faults.push(unknownKey(name, `${flag} ${name}`));
      continue;
    }
    given.set(name, flag === '--set' ? `--set ${name}` : flag);
    setAt(values, key.path, parseText(key.schema, text));
  }
  return { values, folder, givenAs: (key) => given.get(key) ?? key };
}

/** The fault of a key that the schema does not have, with the one that was probably meant. */
export function unknownKey(name: string, givenAs: string): ConfigFault {
  const meant = nearest(name, [
    ...CONFIG_KEYS.map((key) => key.name),
    ...new Set(CONFIG_KEYS.map((key) => key.path[0] ?? '')),
  ]);
  return { key: givenAs, expected: `a known key${meant === undefined ? '' : `; did you mean ${meant}?`}` };
}

/** What a layer says of a key; undefined where it says nothing. */
export function valueAt(values: Readonly<Record<string, unknown>>, key: ConfigKey): unknown {
  let value: unknown = values;
  for (const part of key.path) {
    if (!isRecord(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

function setAt(values: Record<string, unknown>, at: readonly string[], value: unknown): void {
  const [part, ...rest] = at;
  if (part === undefined) return;
  if (rest.length === 0) {
    values[part] = value;
    return;
  }
  const below = values[part];
  const section: Record<string, unknown> = isRecord(below) ? below : {};
  values[part] = section;
  setAt(section, rest, value);
}

/** A section whose keys are all commented out is `null` in YAML; it says nothing. */
function withoutEmptySections(
  values: Readonly<Record<string, unknown>>,
  schema: SectionSchema,
): Record<string, unknown> {
  const entries = Object.entries(values).flatMap(([part, value]): [string, unknown][] => {
    const node = Object.hasOwn(schema.properties, part) ? schema.properties[part] : undefined;
    if (!node || !isSection(node)) return [[part, value]];
    if (value === null) return [];
    return [[part, isRecord(value) ? withoutEmptySections(value, node) : value]];
  });
  return Object.fromEntries(entries);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
