import type { NomadVariables } from './api.js';
import { Fields } from './decode.js';
import type { Http } from './http.js';
import type { Variable } from './model.js';

/** `/v1/var`. */
export class Variables implements NomadVariables {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
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
  const variable = new Fields(value, 'a variable');
  return {
    path: variable.text('Path'),
    modifyIndex: variable.number('ModifyIndex'),
    items: variable.texts('Items') ?? {},
  };
}
