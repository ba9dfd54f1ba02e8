import net from 'node:net';

/** A set of addresses. */
export interface Networks {
  /** False for what is no address, too. An IPv4 address is found in either spelling, also as `::ffff:10.0.0.1`. */
  has(address: string): boolean;
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or an address alone. Undefined where it is none of these. */
function parseNetwork(
  text: string,
): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = net.isIP(address);
  const width = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? width : Number(bits);
  if (version === 0 || prefix > width || address.includes('%')) return undefined;
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** True for a network or an address as `createNetworks` takes them. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined;
}

/** The addresses in any of these networks; what is no network has none. */
export function createNetworks(texts: readonly string[]): Networks {
  const list = new net.BlockList();
  for (const text of texts) {
    const network = parseNetwork(text);
    if (network) list.addSubnet(network.address, network.prefix, network.family);
  }
  return {
    has: (address) => {
      const version = net.isIP(address);
      return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
    },
  };
}
