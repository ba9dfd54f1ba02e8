/**
 * Which header fields of a message travel on between client and owner.
 *
 * Left out are those of one connection alone (RFC 9110, 7.6.1), also those that `Connection` names; how the body is
 * framed and what is expected of it, which is said anew; and what is between a client and its replica, or between
 * replicas. So nothing that a client names in `Connection` can take away or change what this file adds.
 */
import type { IncomingMessage } from 'node:http';
import { TOKEN_HEADER } from '../../protocol/http.js';
import { withoutToken } from '../../protocol/subprotocols.js';
import { HOP_HEADER } from './hop.js';

const OF_CONNECTION = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const NOT_IN_ANSWERS = new Set([...OF_CONNECTION, HOP_HEADER]);
const NOT_IN_REQUESTS = new Set([
  ...OF_CONNECTION,
  'authorization',
  'content-length',
  'expect',
  'host',
  HOP_HEADER,
  TOKEN_HEADER,
]);

export interface RequestHead {
  /** Where it goes, as `Host` has it. */
  readonly host: string;
  /** The mark of the hop. */
  readonly mark: string;
  readonly isUpgrade: boolean;
}

/** True for a request that is followed by a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The header of the request to the owner: names and values in turn. */
export function requestHeaders(req: IncomingMessage, { host, mark, isUpgrade }: RequestHead): string[] {
  const { headers } = req;
  const fields = ['Host', host, HOP_HEADER, mark];
  if (isUpgrade) fields.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
  else fields.push('Connection', 'keep-alive');
  if (hasBody(req)) {
    const length = headers['content-length'];
    // The owner says that it has the runner before any of the body is sent.
    fields.push('Expect', '100-continue');
    if (length === undefined) fields.push('Transfer-Encoding', 'chunked');
    else fields.push('Content-Length', length);
  } else if (headers['content-length'] !== undefined || req.method === 'POST' || req.method === 'PATCH') {
    fields.push('Content-Length', '0');
  }
  for (const [name, value] of passedOn(req, NOT_IN_REQUESTS)) {
    const kept = name.toLowerCase() === 'sec-websocket-protocol' ? withoutToken(value) : value;
    if (kept !== '') fields.push(name, kept);
  }
  return fields;
}

/** The header of the answer to the client: names and values in turn. */
export function answerHeaders(response: IncomingMessage): string[] {
  return [...passedOn(response, NOT_IN_ANSWERS)].flat();
}

function* passedOn(
  { rawHeaders, headers }: IncomingMessage,
  excluded: ReadonlySet<string>,
): Iterable<[name: string, value: string]> {
  const named = (headers.connection ?? '').toLowerCase().split(',');
  const ofConnection = new Set(named.map((name) => name.trim()));
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const lower = name.toLowerCase();
    if (excluded.has(lower)) continue;
    // Of an answer the length stays: it comes from a replica, and without it the client could not tell the end.
    if (ofConnection.has(lower) && lower !== 'content-length') continue;
    yield [name, rawHeaders[index + 1] ?? ''];
  }
}
