/**
 * What proxies say of the address that a client used: `X-Forwarded-Proto` and `-Host`, or `Forwarded` (RFC 7239).
 *
 *   client ──▶ proxy A (adds "for=client") ──▶ proxy B (adds "for=A") ──▶ here; the connection is from B
 *
 * Each proxy adds to the right end of a list, or replaces the list by its own word. A word is believed only if whoever
 * added it is trusted: the last one if the connection is from a trusted address, the one before if the last names a
 * trusted address too, and so on. Of the believed words the first is nearest to the client. A client can write such
 * headers as well; a word of its own stands left of all that are believed.
 */
import type { IncomingMessage } from 'node:http';
import type { Networks } from '../../config/networks.js';

/** What is believed; undefined where nothing is said. */
export interface ForwardedAddress {
  readonly proto: string | undefined;
  readonly host: string | undefined;
}

/** Headers without which nothing is said. */
const FORWARDING = ['x-forwarded-proto', 'x-forwarded-host', 'forwarded'];

const NOTHING: ForwardedAddress = { proto: undefined, host: undefined };

export function forwardedAddress({ socket, headers }: IncomingMessage, trusted: Networks): ForwardedAddress {
  if (!FORWARDING.some((name) => name in headers)) return NOTHING;
  if (!trusted.has(socket.remoteAddress ?? '')) return NOTHING;
  const list = (name: string): string[] =>
    String(headers[name] ?? '')
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '');
  const protos = list('x-forwarded-proto');
  const hosts = list('x-forwarded-host');
  if (protos.length > 0 || hosts.length > 0) {
    const believed = countBelieved(list('x-forwarded-for'), trusted);
    return { proto: firstOf(protos, believed), host: firstOf(hosts, believed) };
  }
  const elements = parseForwarded(headers.forwarded ?? '');
  const clients = elements.map((element) => element.get('for') ?? '');
  const element = firstOf(elements, countBelieved(clients, trusted));
  return element ? { proto: element.get('proto'), host: element.get('host') } : NOTHING;
}

/** How many words from the right were added by trusted proxies, given whom each says that it got the request from. */
function countBelieved(clients: readonly string[], trusted: Networks): number {
  const untrusted = clients.findLastIndex((client) => !trusted.has(bareAddress(client)));
  return clients.length - Math.max(untrusted, 0);
}

/** The leftmost of the last `count`; a list that is shorter was replaced by a proxy on the way. */
function firstOf<T>(list: readonly T[], count: number): T | undefined {
  return list[Math.max(0, list.length - Math.max(1, count))];
}

/** `192.0.2.1:80` → `192.0.2.1`, `[2001:db8::1]:80` → `2001:db8::1`. */
function bareAddress(node: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]+):\d+)$/.exec(node) ?? [];
  return bracketed ?? plain ?? node;
}

/** The elements of the header, each as its parameters by name in lower case. None where it is malformed. */
function parseForwarded(header: string): Map<string, string>[] {
  const elements: Map<string, string>[] = [];
  let element = new Map<string, string>();
  const pair = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=("(?:[^"\\]|\\.)*"|[\w!#$%&'*+.^`|~:[\]-]*))?[ \t]*([;,]|$)/gy;
  while (pair.lastIndex < header.length) {
    const match = pair.exec(header);
    if (!match) return [];
    const [, name, value = '', separator] = match;
    if (name !== undefined) {
      const isQuoted = value.startsWith('"');
      element.set(name.toLowerCase(), isQuoted ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value);
    }
    if (separator === ';') continue;
    if (element.size > 0) elements.push(element);
    element = new Map();
  }
  if (element.size > 0) elements.push(element);
  return elements;
}
