import type { EnvironmentId } from '../base/ids.js';
import type { Environment } from '../environments/environment.js';

/**
 * Environments whose runners start but cannot run commands as they have to, such as an image that cannot drop
 * privileges. Found out by the first command in a runner, and forgotten when another runner shows the opposite or the
 * environment is replaced by another specification.
 */
export class UnfitEnvironments {
  readonly #known = new Map<EnvironmentId, { readonly specHash: string; readonly reason: string }>();

  /** True where this is news. */
  report({ id, specHash }: Environment, reason: string): boolean {
    const before = this.#known.get(id);
    this.#known.set(id, { specHash, reason });
    return before?.specHash !== specHash || before.reason !== reason;
  }

  /** A runner of the environment can run commands. */
  clear({ id }: Environment): void {
    this.#known.delete(id);
  }

  /** Why the environment is unfit; undefined where nothing is known against it. */
  reasonOf({ id, specHash }: Environment): string | undefined {
    const known = this.#known.get(id);
    return known?.specHash === specHash ? known.reason : undefined;
  }
}
