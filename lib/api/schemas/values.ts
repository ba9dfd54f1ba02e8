import type { Schema } from '../middleware/validate.js';

/** Kinds of values that several bodies hold. */

/** Longest time in seconds that fits a timer of 31 bits of milliseconds. */
const MAX_SECONDS = 2_147_483;

/** Text that can stand in an argument vector or an environment. */
const NO_NUL = '^[^\\u0000]*$';

export const seconds: Schema = {
  type: 'integer',
  minimum: 0,
  maximum: MAX_SECONDS,
  expected: `an integer from 0 to ${MAX_SECONDS} (seconds)`,
};

export const flag: Schema = { type: 'boolean', expected: 'true or false' };

export const text: Schema = { type: 'string', pattern: NO_NUL, expected: 'a text without NUL' };

/** `null` means absent. */
export const variables: Schema = {
  type: 'object',
  nullable: true,
  expected: 'an object of texts, or null',
  propertyNames: {
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    expected: 'of the form [A-Za-z_][A-Za-z0-9_]*',
  },
  additionalProperties: text,
};

export function integer(minimum: number, maximum: number): Schema {
  return { type: 'integer', minimum, maximum, expected: `an integer from ${minimum} to ${maximum}` };
}

/** An object with these fields and no others. */
export function object(properties: Readonly<Record<string, Schema>>, required: readonly string[]): Schema {
  return { type: 'object', expected: 'an object', additionalProperties: false, properties, required };
}
