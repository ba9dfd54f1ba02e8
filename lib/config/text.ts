import type { KeySchema } from './key-schema.js';

/**
 * Turns the text of an environment variable or a flag into the kind of value that its key holds. A text that is none
 * of that kind is returned as it is, so that the schema refuses it like any other bad value.
 */
export function parseText(schema: KeySchema, text: string): unknown {
  switch (schema.type) {
    case 'string':
      return text;
    case 'integer':
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return parseBoolean(text);
    case 'array':
      if (schema.items?.type === 'object') return parseJson(text);
      return text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '');
    case 'object':
      return parseJson(text);
  }
}

/** The spellings that Nomad's command line takes for NOMAD_SKIP_VERIFY. */
function parseBoolean(text: string): unknown {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true;
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text)) return false;
  return text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the schema says what was expected
  }
}
