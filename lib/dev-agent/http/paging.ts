import type { Request, Response } from 'express';
import { HttpFailure } from '../failure.js';
import { parseFilter } from '../filter/parser.js';
import { matches } from '../filter/evaluate.js';
import { queryValue } from './answers.js';

export interface ListOptions<T> {
  /** Sorted as Nomad sorts them, by token. */
  readonly records: readonly T[];
  /** Names the place of a record in the order: a page begins with the record of its token. */
  readonly token: (record: T) => string;
  /** True when a record comes before the page that begins at `token`. */
  readonly isBefore: (record: T, token: string) => boolean;
  /** The record as a filter sees it. */
  readonly datum: (record: T) => unknown;
}

/** Filters a list and cuts the asked page out of it; names the next page in the answer's headers. */
export function page<T>(request: Request, response: Response, options: ListOptions<T>): T[] {
  const filterText = queryValue(request, 'filter');
  const filter = filterText === '' ? undefined : parseFilter(filterText);
  const start = queryValue(request, 'next_token');
  const perPage = perPageOf(request);
  const chosen: T[] = [];
  for (const record of options.records) {
    if (start !== '' && options.isBefore(record, start)) continue;
    if (filter && !matches(filter, options.datum(record))) continue;
    if (perPage > 0 && chosen.length === perPage) {
      response.set('X-Nomad-NextToken', options.token(record));
      break;
    }
    chosen.push(record);
  }
  return chosen;
}

function perPageOf(request: Request): number {
  const text = queryValue(request, 'per_page');
  if (text === '') return 0;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) {
    throw new HttpFailure(400, `Failed to parse value of "per_page" (${text}) as a int32`);
  }
  return value;
}
