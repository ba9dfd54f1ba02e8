import type { KeySchema } from './key-schema.js';

/** What a key accepts, in words: `an integer from 0 to 65535`. */
export function expectedOf(schema: KeySchema): string {
  if (schema.expected !== undefined) return schema.expected;
  if (schema.enum) return `one of ${schema.enum.join(', ')}`;
  switch (schema.type) {
    case 'integer':
      return `an integer${range(schema)}`;
    case 'number':
      return `a number${range(schema)}`;
    case 'boolean':
      return 'true or false';
    case 'string':
      return schema.path ? 'a path' : 'a text that is not empty';
    case 'array':
      return 'a list of texts';
    case 'object':
      return 'names with values';
  }
}

function range({ minimum, maximum }: KeySchema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}
