import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { ServerConfig } from '../../config/config.js';
import type { Networks } from '../../config/networks.js';
import { createNetworks } from '../../config/networks.js';
import { forwardedAddress } from './forwarded.js';

/**
 * Where a client reaches the WebSockets of this service: `server.publicUrl` where it is set; else the address under
 * which the client reached us, since that is one that works for it, as far as trusted proxies tell.
 */
export class PublicUrl {
  readonly #configured: string | undefined;
  readonly #trusted: Networks;

  constructor({ publicUrl, trustedProxies }: Pick<ServerConfig, 'publicUrl' | 'trustedProxies'>) {
    this.#configured = publicUrl?.replace(/^http/i, 'ws').replace(/\/+$/, '');
    this.#trusted = createNetworks(trustedProxies);
  }

  /** Such as `wss://serai.example`; no slash at the end. */
  socketBase(req: IncomingMessage): string {
    if (this.#configured !== undefined) return this.#configured;
    const { socket, headers } = req;
    const { proto, host } = forwardedAddress(req, this.#trusted);
    const scheme = socketScheme(proto) ?? (socket instanceof TLSSocket ? 'wss' : 'ws');
    const authority = [host, headers.host].find((each) => each !== undefined && isAuthority(each));
    return `${scheme}://${authority ?? localAuthority(socket)}`;
  }
}

function socketScheme(proto: string | undefined): 'ws' | 'wss' | undefined {
  if (proto === undefined) return undefined;
  if (/^(https|wss)$/i.test(proto)) return 'wss';
  return /^(http|ws)$/i.test(proto) ? 'ws' : undefined;
}

function isAuthority(text: string): boolean {
  return /^([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?$/.test(text) && URL.canParse(`ws://${text}`);
}

/** Clients of HTTP/1.0 send no Host. */
function localAuthority({ localAddress = '127.0.0.1', localPort = 80 }: IncomingMessage['socket']): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
