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
  const isLocalHost = host === undefined || isLocal(host);
  const isSameOrigin = origin === undefined || origin.replace(/^https?:\/\//, '') === host;
  if (isLocalHost && isSameOrigin && forwardedFor(headers).every(isLoopback)) return;
  throw new ServiceError(
    'UNAUTHORIZED',
    'without a token only programs of this machine are served; set auth.token or auth.allowAnonymous',
  );
}

/** The last host that was found local: nearly all requests name the same one. */
let knownLocal: string | undefined;

function isLocal(host: string): boolean {
  if (host === knownLocal) return true;
  const found = isLoopback(hostnameOf(`http://${host}`) ?? '');
  if (found) knownLocal = host;
  return found;
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

const FORWARDING = ['x-forwarded-for', 'x-real-ip', 'forwarded'];

/** Whom proxies say that a request is from. */
function forwardedFor(headers: IncomingHttpHeaders): string[] {
  if (!FORWARDING.some((name) => name in headers)) return [];
  const named = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => String(headers[name] ?? '').split(','));
  const forwarded = [...(headers.forwarded ?? '').matchAll(/\bfor="?(\[[^\]]*\]|[^\s;,":]+)/gi)];
  return [...named, ...forwarded.map(([, node = '']) => node)]
    .map((address) => address.trim())
    .filter((address) => address !== '');
}
