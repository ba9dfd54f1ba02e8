import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServiceError } from '../../base/errors.js';
import type { SubprotocolOffer } from '../../protocol/subprotocols.js';
import { parseSubprotocols } from '../../protocol/subprotocols.js';

/** Whether an `upgrade` event is about a WebSocket at all. */
export function wantsWebSocket(req: IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Gives a connection back to HTTP: its head is written again without the offer to upgrade and read by `serve`, which
 * takes a connection as if it were new.
 */
export function asOrdinaryRequest(
  req: IncomingMessage,
  connection: Socket,
  head: Buffer,
  serve: (connection: Socket) => void,
): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] ?? '';
    const value = req.rawHeaders[index + 1] ?? '';
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  const wantsClose = /(^|,)\s*close\s*(,|$)/i.test(req.headers.connection ?? '');
  lines.push(`Connection: ${wantsClose ? 'close' : 'keep-alive'}`, '', '');
  connection.unshift(Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), head]));
  serve(connection);
}

/**
 * What a handshake offers. INVALID_REQUEST where it is none; `ws` demands the same, but is asked only once an execution is
 * taken, when nothing may fail any more.
 */
export function parseHandshake({ method, headers }: IncomingMessage): SubprotocolOffer {
  const key = headers['sec-websocket-key'];
  const version = headers['sec-websocket-version'];
  const isSound =
    method === 'GET' &&
    key !== undefined &&
    /^[+/0-9A-Za-z]{22}==$/.test(key) &&
    (version === '13' || version === '8');
  if (!isSound) throw new ServiceError('INVALID_REQUEST', 'this is no WebSocket handshake of version 13');
  return parseSubprotocols(headers['sec-websocket-protocol']);
}

/** A part of the path of an upgrade, as Express would give it. INVALID_REQUEST where it is not encoded as one. */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ServiceError('INVALID_REQUEST', 'the path is not encoded as a URL has to be');
  }
}

/** Narrows what the `upgrade` event calls a duplex stream; it is the TCP connection. */
export function isSocket(stream: Duplex): stream is Socket {
  return stream instanceof Socket;
}
