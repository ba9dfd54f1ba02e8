/**
 * Who may pass, and how often: the holder of a token where any is configured, else whoever sits at this machine.
 *
 * One object serves HTTP requests and upgrades, so both are judged alike. Tokens appear in no message and no log. What
 * another replica passes on carries that one's word for the client instead of a token.
 *
 * Not here: which scope a route needs (routes/, principal.ts).
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../base/clock.js';
import { ServiceError } from '../../base/errors.js';
import { RateLimit } from '../../base/rate-limit.js';
import type { AuthConfig, Config } from '../../config/config.js';
import { allTokens, hasTokens } from '../../config/tokens.js';
import { contextOf } from '../context.js';
import type { HopSeal } from '../forwarding/hop.js';
import { tokenOf } from './credentials.js';
import { assertLocal } from './local.js';
import type { Principal } from './principal.js';
import { ANYONE } from './principal.js';
import { TokenRegister } from './token-register.js';

export interface AuthenticatorDeps {
  readonly config: Pick<Config, 'auth'>;
  readonly clock: Clock;
  /** For what other replicas pass on; undefined where there are none, so that their header means nothing. */
  readonly seal?: HopSeal | undefined;
}

export class Authenticator {
  readonly #config: AuthConfig;
  readonly #register: TokenRegister;
  readonly #seal: HopSeal | undefined;
  /** By the name of the token. */
  readonly #limits = new Map<string | undefined, RateLimit>();

  constructor({ config: { auth }, clock, seal }: AuthenticatorDeps) {
    this.#config = auth;
    this.#seal = seal;
    const tokens = allTokens(auth);
    this.#register = new TokenRegister(tokens);
    for (const { name, ...own } of [...tokens, { name: ANYONE.name }]) {
      const { requestsPerSecond: perSecond, burst } = { ...auth.rateLimit, ...own };
      if (perSecond === 0) continue;
      this.#limits.set(
        name,
        new RateLimit({ perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond)), clock }),
      );
    }
  }

  /**
   * Finds out who sends this request, which may be an upgrade, and writes it into its context. UNAUTHORIZED where it may
   * not pass, RATE_LIMITED where it has to wait. What another replica passes on was judged and counted there, and may do
   * what is passed on: use a runner.
   */
  admit(req: IncomingMessage, kind: 'request' | 'upgrade'): Principal {
    const context = contextOf(req);
    const hop = this.#seal?.read(req);
    if (hop) {
      context.cameBy(hop);
      context.principal = { name: hop.tokenName, scopes: ['runners'] };
      return context.principal;
    }
    const principal = this.#identify(req, kind);
    context.principal = principal;
    this.pace(principal);
    return principal;
  }

  /** Counts one request of a principal, or what stands for one. RATE_LIMITED where it has to wait. */
  pace(principal: Principal): void {
    const waitMs = this.#limits.get(principal.name)?.take() ?? 0;
    if (waitMs === 0) return;
    const whose = principal.name === undefined ? 'this service' : `the token ${principal.name}`;
    throw new ServiceError('RATE_LIMITED', `more requests of ${whose} than auth.rateLimit allows`, {
      retryAfterSeconds: waitMs / 1000,
    });
  }

  #identify(req: IncomingMessage, kind: 'request' | 'upgrade'): Principal {
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
