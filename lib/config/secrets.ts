import { readFileSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../base/errors.js';
import { expectedOf } from './expected.js';
import type { ConfigFault } from './faults.js';
import type { ConfigKey } from './keys.js';
import type { Layer } from './sources.js';
import { isRecord, valueAt } from './sources.js';

/**
 * Secrets of the configuration, read from their files where the value is a reference, `file:PATH`. No fault shows what
 * was given, nor what the file holds.
 */
const REFERENCE = 'file:';

/** Where a secret was given, and what it has to be. */
interface Place {
  /** As the operator knows it. */
  readonly name: string;
  /** Where a relative path starts. */
  readonly folder: string;
  readonly pattern: string;
  readonly expected: string;
}

/** The validated value that a layer has for a secret key, or for one with a list of objects that hold secrets. */
export function readSecrets(key: ConfigKey, layer: Layer, faults: ConfigFault[]): unknown {
  const { schema } = key;
  const { folder } = layer;
  const name = layer.givenAs(key.name);
  const value = valueAt(layer.values, key);
  if (typeof value === 'string') {
    return readSecret(
      value,
      { name, folder, pattern: schema.pattern ?? '', expected: expectedOf(schema) },
      faults,
    );
  }
  if (!Array.isArray(value) || schema.items?.type !== 'object') return value;
  const fields = Object.entries(schema.items.properties);
  return value.map((item: unknown, index) => {
    if (!isRecord(item)) return item;
    const secrets = fields.flatMap(([field, { secret, pattern = '', expected }]): [string, unknown][] => {
      const text = item[field];
      if (!secret || typeof text !== 'string') return [];
      const place = { name: `${name} (${field} of item ${index + 1})`, folder, pattern, expected };
      return [[field, readSecret(text, place, faults)]];
    });
    return { ...item, ...Object.fromEntries(secrets) };
  });
}

/** Undefined, with a fault, where the file cannot be read or holds something else. */
function readSecret(text: string, place: Place, faults: ConfigFault[]): string | undefined {
  if (!text.startsWith(REFERENCE)) return text;
  const { name, folder, pattern, expected } = place;
  const file = path.resolve(folder, text.slice(REFERENCE.length));
  try {
    const secret = readFileSync(file, 'utf8').trim();
    // A file that refers to another one is not followed.
    if (!secret.startsWith(REFERENCE) && new RegExp(pattern).test(secret)) return secret;
    faults.push({ key: `${name} (contents of ${file})`, expected });
  } catch (error) {
    faults.push({ key: name, expected: `a readable file (${messageOf(error)})` });
  }
  return undefined;
}
