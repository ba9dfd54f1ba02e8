import net from 'node:net';
import type { Config } from './config.js';
import { hasTokens } from './tokens.js';

const loopback = new net.BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** True for addresses that only this machine can reach, and for the name `localhost`. */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  if (net.isIPv4(bare)) return loopback.check(bare, 'ipv4');
  // A block list maps ::ffff:127.0.0.1 to its IPv4 address by itself.
  if (net.isIPv6(bare)) return loopback.check(bare, 'ipv6');
  return bare.toLowerCase() === 'localhost';
}

/** True for an address that stands for all of the machine's, which nobody can connect to from elsewhere. */
export function isEveryAddress(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '');
  return net.isIP(bare) !== 0 && /^[0.:]+$/.test(bare);
}

/** True where the service may listen: without a token only this machine may reach it, unless that is switched off. */
export function mayListen({ server, auth }: Pick<Config, 'server' | 'auth'>): boolean {
  return hasTokens(auth) || auth.allowAnonymous || isLoopback(server.host);
}
