import type { AuthConfig, TokenConfig } from './config.js';
import type { Scope } from '../base/scopes.js';
import { SCOPES } from '../base/scopes.js';

/** Name of `auth.token` in logs. */
const DEFAULT_NAME = 'default';

type Tokens = Pick<AuthConfig, 'token' | 'tokens'>;

/** Every token, `auth.token` first. */
export function allTokens({ token, tokens }: Tokens): readonly TokenConfig[] {
  return token === undefined ? tokens : [{ name: DEFAULT_NAME, token, scopes: SCOPES }, ...tokens];
}

/** The first token that has all of these scopes. */
export function tokenWith(auth: Tokens, scopes: readonly Scope[]): string | undefined {
  return allTokens(auth).find((each) => scopes.every((scope) => each.scopes.includes(scope)))?.token;
}

/** True where requests need a token. */
export function hasTokens(auth: Tokens): boolean {
  return allTokens(auth).length > 0;
}
