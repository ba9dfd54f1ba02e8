import { readFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { ServiceError } from '../base/errors.js';
import type { Scope } from '../base/scopes.js';
import type { Config } from '../config/config.js';
import { hasTokens, tokenWith } from '../config/tokens.js';
import { ApiClient } from './api-client.js';

/** What `start` does through the API. */
const SCOPES: readonly Scope[] = ['environments', 'runners', 'read'];

/**
 * A client of the service that this process started itself: with a token of the configuration, and trusting the very
 * certificate that is configured, whatever name is in it and whoever signed it. INVALID_CONFIG where no token opens
 * what is needed.
 */
export async function clientOfOwnService(
  url: string,
  { auth, server }: Pick<Config, 'auth' | 'server'>,
): Promise<ApiClient> {
  const token = tokenWith(auth, SCOPES);
  if (token === undefined && hasTokens(auth)) {
    throw new ServiceError(
      'INVALID_CONFIG',
      `start needs a token with the scopes ${SCOPES.join(', ')}: set auth.token, or one in auth.tokens`,
    );
  }
  const { certificate } = server.tls;
  if (certificate === undefined) return new ApiClient(url, { token });
  const agent = new Agent({
    ca: await readFile(certificate),
    allowPartialTrustChain: true,
    checkServerIdentity: () => undefined,
  });
  return new ApiClient(url, { token, agent });
}
