/**
 * Who may pass: the holder of a token where any is configured, else whoever sits at this machine.
 *
 * One object serves HTTP requests and upgrades, so both are judged alike. Tokens appear in no message and no log.
 *
 * Not here: which scope a route needs (routes/, principal.ts).
 */
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import type { AuthConfig, Config } from '../../config/config.js';
import { allTokens, hasTokens } from '../../config/tokens.js';
import { tokenOf } from './credentials.js';
import { assertLocal } from './local.js';
import type { Principal } from './principal.js';
import { ANYONE } from './principal.js';
import { TokenRegister } from './token-register.js';

export interface AuthenticatorDeps {
  readonly config: Pick<Config, 'auth'>;
}

export class Authenticator {
  readonly #config: AuthConfig;
  readonly #register: TokenRegister;

  constructor({ config: { auth } }: AuthenticatorDeps) {
    this.#config = auth;
    this.#register = new TokenRegister(allTokens(auth));
  }

  /** Who sends this request, which may be an upgrade. UNAUTHORIZED where it may not pass. */
  authenticate(req: IncomingMessage, kind: 'request' | 'upgrade'): Principal {
    if (!hasTokens(this.#config)) {
      if (!this.#config.allowAnonymous) assertLocal(req.headers);
      return ANYONE;
    }
    const token = tokenOf(req, kind === 'upgrade');
    const principal = token === undefined ? undefined : this.#register.find(token);
    if (principal) return principal;
    throw new ServiceError(
      'UNAUTHORIZED',
      token === undefined
        ? 'a token is needed, in the header Poseidon-Token or Authorization: Bearer'
        : 'the token of the request is not valid',
    );
  }
}
