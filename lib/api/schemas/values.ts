import type { Schema } from './schema.js';
import { integer, text } from './schema.js';

/** Kinds of values that several bodies and queries hold. */

/** Longest time in seconds that fits a timer of 31 bits of milliseconds. */
const MAX_SECONDS = 2_147_483;

/** Text that can stand in an argument vector, an environment or a path. */
const NO_NUL = '^[^\\u0000\\ud800-\\udfff]*$';

export const seconds: Schema<number> = {
  ...integer(0, MAX_SECONDS),
  expected: `an integer from 0 to ${MAX_SECONDS} (seconds)`,
};

export const flag: Schema<boolean> = { type: 'boolean', expected: 'true or false' };

export const plainText = text('a text without NUL and without half a surrogate pair', { pattern: NO_NUL });

/** Longest that the kernel takes, its NUL not counted. */
export const path = text('a path of 1 to 4095 characters, without NUL and without half a surrogate pair', {
  pattern: '^[^\\u0000\\ud800-\\udfff]+$',
  minLength: 1,
  maxLength: 4095,
});

/** `null` means absent. */
export const variables: Schema<Readonly<Record<string, string>> | null> = {
  type: ['object', 'null'],
  expected: 'an object of texts, or null',
  propertyNames: {
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    expected: 'of the form [A-Za-z_][A-Za-z0-9_]*',
  },
  additionalProperties: plainText,
  examples: [{ LANG: 'C.UTF-8' }],
};

export const environmentIdNumber = integer(0, Number.MAX_SAFE_INTEGER);

/** What the client of a session calls a command. */
export const commandId = text('a text of 1 to 128 characters', { minLength: 1, maxLength: 128 });
