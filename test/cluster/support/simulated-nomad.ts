import { ServiceError } from '../../../lib/base/errors.js';
import type { Variable, VariableRow } from '../../../lib/nomad/model.js';

/** Nomad's variables in memory: one index for all, check-and-set, as far as replicas use them. */
export class VariableStore {
  readonly #variables = new Map<string, Variable>();
  #index = 100;

  list(prefix: string): VariableRow[] {
    return [...this.#variables.values()]
      .filter(({ path }) => path.startsWith(prefix))
      .map(({ path, modifyIndex }) => ({ path, modifyIndex }));
  }

  get(path: string): Variable | undefined {
    return this.#variables.get(path);
  }

  put(path: string, items: Readonly<Record<string, string>>, cas?: number): Variable {
    this.#check(path, cas);
    this.#index += 1;
    const variable = { path, items, modifyIndex: this.#index };
    this.#variables.set(path, variable);
    return variable;
  }

  remove(path: string, cas?: number): void {
    this.#check(path, cas);
    this.#index += 1;
    this.#variables.delete(path);
  }

  #check(path: string, cas: number | undefined): void {
    const now = this.#variables.get(path)?.modifyIndex ?? 0;
    if (cas !== undefined && cas !== now) throw new ServiceError('NOMAD_CONFLICT', `${path} has ${now}`);
  }
}
