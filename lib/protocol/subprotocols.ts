/**
 * The subprotocols of an upgrade (`Sec-WebSocket-Protocol`, RFC 6455).
 *
 * A browser can set no header of a WebSocket, so a token may come in this one: `bearer.<base64url of the token>`, beside
 * `serai.v1` or alone. It is never chosen: a secret is not sent back. Chromium fails a connection that chose nothing of
 * what it offered, so browsers offer `serai.v1` beside their token.
 *
 * Not here: what is spoken with each (websocket.ts), whether a token is one (api/access/).
 */
import { ServiceError } from '../base/errors.js';

/** The richer protocol: messages of the client are JSON too. */
export const SERAI_V1 = 'serai.v1';
const TOKEN_PREFIX = 'bearer.';

export interface SubprotocolOffer {
  /** The token that was sent as a subprotocol, if one was. */
  readonly token: string | undefined;
  /** The one to answer with; undefined where none is chosen. */
  readonly chosen: typeof SERAI_V1 | undefined;
}

/** Reads the header field. INVALID_REQUEST unless it is a list of different names. */
export function parseSubprotocols(field: string | undefined): SubprotocolOffer {
  const names = namesIn(field);
  const isSound = names.every((name) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name));
  if (!isSound || new Set(names).size < names.length) {
    throw new ServiceError('INVALID_REQUEST', 'Sec-WebSocket-Protocol must be a list of different names');
  }
  return {
    token: tokenIn(field),
    chosen: names.includes(SERAI_V1) ? SERAI_V1 : undefined,
  };
}

/** The token alone, whatever else is wrong with the field: who sends nonsense is asked for a token first. */
export function tokenIn(field: string | undefined): string | undefined {
  const name = namesIn(field).find((each) => each.startsWith(TOKEN_PREFIX));
  return name && Buffer.from(name.slice(TOKEN_PREFIX.length), 'base64url').toString('utf8');
}

/** The header field without its token; the empty text where nothing else was offered. */
export function withoutToken(field: string): string {
  return namesIn(field)
    .filter((name) => !name.startsWith(TOKEN_PREFIX))
    .join(', ');
}

/** The subprotocol that carries a token. */
export function tokenSubprotocol(token: string): string {
  return TOKEN_PREFIX + Buffer.from(token, 'utf8').toString('base64url');
}

function namesIn(field: string | undefined): string[] {
  return field === undefined ? [] : field.split(',').map((name) => name.trim());
}
