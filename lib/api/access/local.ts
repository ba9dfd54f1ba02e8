import type { IncomingHttpHeaders } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import { isLoopback } from '../../config/loopback.js';

/**
 * Throws UNAUTHORIZED unless a request without a token comes from a program of this machine.
 *
 * The server listens on loopback then, where any web page that the operator looks at can send requests too, and any
 * proxy of this machine passes on what others send. So a request must name a loopback host (else a foreign name was
 * made to resolve to this machine); if a browser says where it comes from, come from the same host; and if a proxy says
 * whom it is from, be from this machine.
 */
export function assertLocal(headers: IncomingHttpHeaders): void {
  const { host, origin } = headers;
  const isLocalHost = host === undefined || isLoopback(hostnameOf(`http://${host}`) ?? '');
  const isSameOrigin = origin === undefined || origin.replace(/^https?:\/\//, '') === host;
  if (isLocalHost && isSameOrigin && forwardedFor(headers).every(isLoopback)) return;
  throw new ServiceError(
    'UNAUTHORIZED',
    'without a token only programs of this machine are served; set auth.token or auth.allowAnonymous',
  );
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Whom proxies say that a request is from. */
function forwardedFor(headers: IncomingHttpHeaders): string[] {
  const named = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => String(headers[name] ?? '').split(','));
  const forwarded = [...(headers.forwarded ?? '').matchAll(/\bfor="?(\[[^\]]*\]|[^\s;,":]+)/gi)];
  return [...named, ...forwarded.map(([, node = '']) => node)]
    .map((address) => address.trim())
    .filter((address) => address !== '');
}
