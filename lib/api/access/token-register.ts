import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenConfig } from '../../config/config.js';
import type { Principal } from './principal.js';

interface Entry {
  readonly digest: Buffer;
  readonly principal: Principal;
}

/**
 * The tokens that are accepted. Only digests are compared, each in constant time and always all of them, so the time
 * tells neither how much of a token was right nor which one it is.
 */
export class TokenRegister {
  /** Of this process: what a digest of it would be is known to nobody beforehand. */
  readonly #key = randomBytes(32);
  readonly #entries: readonly Entry[];

  constructor(tokens: readonly TokenConfig[]) {
    this.#entries = tokens.map(({ name, token, scopes }) => ({
      digest: this.#digest(token),
      principal: { name, scopes },
    }));
  }

  /** Whose token it is; undefined for a wrong one. */
  find(token: string): Principal | undefined {
    const digest = this.#digest(token);
    let found: Principal | undefined;
    for (const entry of this.#entries) {
      if (timingSafeEqual(entry.digest, digest)) found = entry.principal;
    }
    return found;
  }

  #digest(token: string): Buffer {
    return createHmac('sha256', this.#key).update(token, 'utf8').digest();
  }
}
