import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import type { Schema, Validator } from './validate.js';
import { createValidator } from './validate.js';

/**
 * A validator of the query of a request: every parameter once, none that `properties` does not name. Values are texts.
 */
export function createQueryValidator<T>(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
): (req: IncomingMessage) => T {
  const validate: Validator<T> = createValidator<T>({
    type: 'object',
    expected: 'a query',
    additionalProperties: false,
    properties,
    required,
  });
  return (req) => validate(parseQuery(req.url ?? ''));
}

function parseQuery(url: string): Record<string, string> {
  const start = url.indexOf('?');
  const given = new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
  const query = new Map<string, string>();
  for (const [name, value] of given) {
    if (query.has(name)) {
      throw new ServiceError(
        'INVALID_REQUEST',
        `the parameter ${JSON.stringify(name.slice(0, 60))} is given twice`,
      );
    }
    query.set(name, value);
  }
  return Object.fromEntries(query);
}
