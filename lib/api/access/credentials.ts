import type { IncomingMessage } from 'node:http';
import { TOKEN_HEADER } from '../../protocol/http.js';
import { tokenIn } from '../../protocol/subprotocols.js';

/**
 * The token that a request carries, undefined where it has none: `Poseidon-Token`, else `Authorization: Bearer`, else,
 * of an upgrade, the subprotocol. The first that is there counts, also if it is wrong.
 */
export function tokenOf({ headers }: IncomingMessage, isUpgrade: boolean): string | undefined {
  const own = headers[TOKEN_HEADER];
  if (typeof own === 'string' && own !== '') return own;
  const [, bearer] = /^Bearer +(.+)$/i.exec(headers.authorization ?? '') ?? [];
  if (bearer !== undefined) return bearer;
  return isUpgrade ? tokenIn(headers['sec-websocket-protocol']) : undefined;
}
