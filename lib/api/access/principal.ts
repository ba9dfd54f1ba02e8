import { ServiceError } from '../../base/errors.js';
import type { Access } from '../operations/operation.js';
import type { Scope } from '../../base/scopes.js';
import { SCOPES } from '../../base/scopes.js';

/** Who a request is from, as far as that is known: the holder of a token, or whoever may do without one. */
export interface Principal {
  /** Name of the token, for the log; undefined without one. */
  readonly name: string | undefined;
  readonly scopes: readonly Scope[];
}

/** Whoever is served where no token is configured; may do everything. */
export const ANYONE: Principal = { name: undefined, scopes: SCOPES };

/** Throws FORBIDDEN unless the principal may call an operation. */
export function assertAllowed(principal: Principal | undefined, access: Access): void {
  if (access === 'everybody') return;
  if (!principal) throw new ServiceError('ILLEGAL_STATE', 'a request that nobody authenticated');
  if (access === 'any-token' || principal.scopes.includes(access)) return;
  throw new ServiceError(
    'FORBIDDEN',
    `the token ${principal.name ?? ''} lacks the scope ${access}; it has ${principal.scopes.join(', ')}`,
  );
}
