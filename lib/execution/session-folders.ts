import type { Randomness } from '../base/ids.js';
import type { SessionNames } from '../shell/sweep.js';

/**
 * Names for what sessions leave in a runner while they are open: `/tmp/.serai-<replica>-<boot>-<random>`. So whoever
 * comes after a service that died knows what was its.
 */
export class SessionFolders {
  readonly names: SessionNames;
  readonly #randomness: Randomness;

  /** `replica` is the same after a restart, and nobody else's; letters, digits and `_`. */
  constructor(replica: string, randomness: Randomness) {
    const family = `/tmp/.serai-${replica}-`;
    const boot = hex(randomness).slice(0, 8);
    this.names = { family, house: `${family}${boot}-` };
    this.#randomness = randomness;
  }

  /** A path that nothing has yet. */
  next(): string {
    return this.names.house + hex(this.#randomness);
  }
}

function hex(randomness: Randomness): string {
  return randomness.uuid().replaceAll('-', '');
}
