import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import type { Schema } from '../schemas/schema.js';
import { createValidator } from './validate.js';

/**
 * A validator of the query of a request: every parameter once, none that the schema does not name. What the schema has
 * as a boolean is written `true` or `false`; everything else is a text.
 */
export function createQueryValidator<T>(schema: Schema<T>): (req: IncomingMessage) => T {
  const validate = createValidator(schema);
  const isFlag = (name: string): boolean => schema.properties?.[name]?.type === 'boolean';
  return (req) => validate(parseQuery(req.url ?? '', isFlag));
}

function parseQuery(url: string, isFlag: (name: string) => boolean): Record<string, unknown> {
  const start = url.indexOf('?');
  const text = start < 0 ? '' : url.slice(start + 1);
  assertEncoded(text);
  const given = new URLSearchParams(text);
  const query = new Map<string, unknown>();
  for (const [name, value] of given) {
    if (query.has(name)) {
      throw new ServiceError(
        'INVALID_REQUEST',
        `the parameter ${JSON.stringify(name.slice(0, 60))} is given twice`,
      );
    }
    query.set(name, isFlag(name) && /^(true|false)$/.test(value) ? value === 'true' : value);
  }
  return Object.fromEntries(query);
}

/** What is no UTF-8 would become another text without a word. */
function assertEncoded(query: string): void {
  try {
    decodeURIComponent(query);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the query is not encoded as a URL has to be');
  }
}
