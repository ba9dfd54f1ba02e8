/**
 * Who may pass: the token of `Poseidon-Token` where one is configured, else whoever sits at this machine.
 *
 * Without a token the server listens on loopback, where any web page that the operator looks at can send requests too;
 * so a request must name a loopback host (else a foreign name was made to resolve to this machine) and, if a browser
 * says where it comes from, come from the same host. Tokens are compared as hashes, in constant time, and appear in no
 * message and no log.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import type { AuthConfig } from '../../config/config.js';
import { isLoopback } from '../../config/loopback.js';
import { TOKEN_HEADER } from '../../protocol/http.js';

/** Throws UNAUTHORIZED unless the request may pass. */
export type Authenticator = (req: IncomingMessage) => void;

export function createAuthenticator({ token, allowAnonymous }: AuthConfig): Authenticator {
  if (token !== undefined) {
    const expected = digest(token);
    return (req) => {
      const given = req.headers[TOKEN_HEADER];
      if (typeof given === 'string' && timingSafeEqual(digest(given), expected)) return;
      throw new ServiceError('UNAUTHORIZED', 'the header Poseidon-Token holds no valid token');
    };
  }
  return allowAnonymous ? () => undefined : assertLocal;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

function assertLocal({ headers }: IncomingMessage): void {
  const { host, origin } = headers;
  const isLocalHost = host === undefined || isLoopback(hostnameOf(`http://${host}`) ?? '');
  const isSameOrigin = origin === undefined || origin.replace(/^https?:\/\//, '') === host;
  if (isLocalHost && isSameOrigin) return;
  throw new ServiceError(
    'UNAUTHORIZED',
    'without a token only programs of this machine are served; set auth.token or auth.allowAnonymous',
  );
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
