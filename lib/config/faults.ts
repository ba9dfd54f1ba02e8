import type { ErrorObject } from 'ajv';
import { ServiceError } from '../base/errors.js';
import { expectedOf } from './expected.js';
import type { ConfigKey } from './keys.js';
import { CONFIG_KEYS } from './keys.js';
import type { Layer } from './sources.js';
import { unknownKey, valueAt } from './sources.js';

/** One thing that is wrong with the configuration. */
export interface ConfigFault {
  /** The key as the operator gave it. */
  readonly key: string;
  /** The refused value as text; absent for secrets and where there is none. */
  readonly value?: string;
  readonly expected: string;
}

/** Turns what the schema refused in one layer into faults, one for each key. */
export function faultsOf(errors: readonly ErrorObject[], layer: Layer): ConfigFault[] {
  const faults = new Map<string, ConfigFault>();
  for (const error of errors) {
    const path = error.instancePath.split('/').slice(1).map(unescapePointer);
    const key = CONFIG_KEYS.find((each) => each.path.every((part, index) => part === path[index]));
    const inItem = key && itemFault(key, error, path.slice(key.path.length));
    if (key && inItem) {
      const place = `${inItem.field} of item ${inItem.index + 1}`;
      faults.set(`${key.name}/${place}`, {
        key: `${layer.givenAs(key.name)} (${place})`,
        expected: inItem.expected,
      });
    } else if (key) {
      const shown = key.schema.secret ? {} : { value: JSON.stringify(valueAt(layer.values, key)) };
      const expected = expectedOf(key.schema);
      faults.set(key.name, { key: layer.givenAs(key.name), ...shown, expected });
    } else if (error.keyword === 'additionalProperties') {
      const unknown = [...path, String(error.params['additionalProperty'])].join('.');
      faults.set(unknown, unknownKey(unknown, layer.givenAs(unknown)));
    } else {
      const section = path.join('.');
      faults.set(section, { key: layer.givenAs(section), expected: 'a section with keys' });
    }
  }
  return [...faults.values()];
}

/** What is wrong with one field of an object in a list; undefined where it is the list or the object as a whole. */
function itemFault(
  { schema: { items } }: ConfigKey,
  { keyword, params }: ErrorObject,
  below: readonly string[],
): { readonly index: number; readonly field: string; readonly expected: string } | undefined {
  if (items?.type !== 'object' || below.length === 0) return undefined;
  const known = Object.keys(items.properties);
  const index = Number(below[0]);
  if (keyword === 'additionalProperties') {
    return { index, field: String(params['additionalProperty']), expected: `one of ${known.join(', ')}` };
  }
  const field = keyword === 'required' ? String(params['missingProperty']) : below[1];
  const expected = field === undefined ? undefined : items.properties[field]?.expected;
  return field === undefined || expected === undefined ? undefined : { index, field, expected };
}

/** All faults in one error, a line each. */
export function configError(faults: readonly ConfigFault[]): ServiceError {
  const lines = faults.map(({ key, value, expected }) =>
    value === undefined ? `${key}: expected ${expected}` : `${key}: ${value} is not ${expected}`,
  );
  const count = lines.length === 1 ? 'one fault' : `${lines.length} faults`;
  return new ServiceError('INVALID_CONFIG', [`the configuration has ${count}:`, ...lines].join('\n  '), {
    details: { faults },
  });
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
