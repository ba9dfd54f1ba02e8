import type { NomadVariables } from './api.js';
import { decodeList, Fields } from './decode.js';
import type { Http } from './http.js';
import type { Variable, VariableRow } from './model.js';

/** `/v1/vars` and `/v1/var`. */
export class Variables implements NomadVariables {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list(prefix: string, signal?: AbortSignal): Promise<VariableRow[]> {
    const call = { method: 'GET', path: '/v1/vars', query: { prefix }, signal } as const;
    return this.#http.list(call, (body) => decodeList(body, 'the list of variables', decodeRow));
  }

  async get(path: string, signal?: AbortSignal): Promise<Variable | undefined> {
    const call = { method: 'GET', path: variablePath(path), signal } as const;
    const answer = await this.#http.find(call, 'variable not found');
    return answer && decodeVariable(answer.body);
  }

  async put(
    path: string,
    items: Readonly<Record<string, string>>,
    { cas, signal }: { cas?: number; signal?: AbortSignal } = {},
  ): Promise<Variable> {
    const answer = await this.#http.request({
      method: 'PUT',
      path: variablePath(path),
      query: casQuery(cas),
      body: { Path: path, Items: items },
      signal,
    });
    return decodeVariable(answer.body);
  }

  async remove(path: string, { cas, signal }: { cas?: number; signal?: AbortSignal } = {}): Promise<void> {
    const call = { method: 'DELETE', path: variablePath(path), query: casQuery(cas), signal } as const;
    await this.#http.find(call, 'variable not found');
  }
}

function variablePath(path: string): string {
  return `/v1/var/${path.split('/').map(encodeURIComponent).join('/')}`;
}

function casQuery(cas: number | undefined) {
  return { cas: cas === undefined ? undefined : String(cas) };
}

function decodeVariable(value: unknown): Variable {
  return { ...decodeRow(value), items: new Fields(value, 'a variable').texts('Items') ?? {} };
}

function decodeRow(value: unknown): VariableRow {
  const row = new Fields(value, 'a variable');
  return { path: row.text('Path'), modifyIndex: row.number('ModifyIndex') };
}
