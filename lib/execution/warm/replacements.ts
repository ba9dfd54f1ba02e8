import type { EnvironmentId } from '../../base/ids.js';

/**
 * Sees to it that of each environment one runner at a time is replaced for answering wrongly: should the cause lie
 * elsewhere, the others stay.
 */
export class Replacements {
  /** By environment, the number of runners that had come when one was replaced. */
  readonly #under = new Map<EnvironmentId, number>();

  /** True where one of this environment may be replaced now. */
  isFree(id: EnvironmentId): boolean {
    return !this.#under.has(id);
  }

  begin(id: EnvironmentId, cameSoFar: number): void {
    this.#under.set(id, cameSoFar);
  }

  /** A runner of the environment was checked, well or not; one that came after the last replacement ends it. */
  checked(id: EnvironmentId, number: number): void {
    if (number > (this.#under.get(id) ?? Infinity)) this.#under.delete(id);
  }
}
