/**
 * The mark of a request that another replica passes on: one header, `Serai-Hop: <what is told>.<seal>`.
 *
 *   what is told: who passes it on, and what that one found out about the client, as base64url of JSON
 *   seal:         HMAC-SHA-256 of method, target and what is told, with `cluster.secret` as the key
 *
 * The client's own token was checked by the sender and does not travel on. The secret itself never leaves the process:
 * whoever sees one request of a hop cannot make another one from it.
 *
 * Not here: what else goes on such a request (hop-headers.ts), what it may do (routes/, websocket/).
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.js';
import type { ReplicaId } from '../../base/ids.js';
import { replicaId } from '../../base/ids.js';

/**
 * On requests the mark above; on the answer to one, `not-owner` where the receiver does not have the runner, and `fenced`
 * where another process goes by its name.
 */
export const HOP_HEADER = 'serai-hop';
/** Value of the header on such an answer. */
export const NOT_OWNER = 'not-owner';
export const FENCED = 'fenced';

/** What the sender tells. */
export interface Hop {
  readonly from: ReplicaId;
  /** Id of the request in the log of the sender. */
  readonly requestId: string;
  /** Name of the client's token; undefined without one. */
  readonly tokenName: string | undefined;
  /** Where the client reaches WebSockets, such as `wss://serai.example`. */
  readonly socketBase: string;
}

/** What a mark is good for. */
export interface HopTarget {
  readonly method: string;
  /** Path and query, as they are on the wire. */
  readonly url: string;
}

/** Makes and reads marks with one secret. */
export class HopSeal {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** The value of the header. */
  mark(hop: Hop, target: HopTarget): string {
    const told = Buffer.from(JSON.stringify(hop), 'utf8').toString('base64url');
    return `${told}.${this.#seal(told, target).toString('base64url')}`;
  }

  /** What the mark of a request says; undefined where it has none. UNAUTHORIZED for one that was not made with the secret. */
  read({ headers, method = '', url = '' }: IncomingMessage): Hop | undefined {
    const mark = headers[HOP_HEADER];
    if (mark === undefined) return undefined;
    const [, told = '', seal = ''] = /^([\w-]+)\.([\w-]+)$/.exec(String(mark)) ?? [];
    const expected = this.#seal(told, { method, url });
    const given = Buffer.from(seal, 'base64url');
    const hop =
      given.length === expected.length && timingSafeEqual(given, expected) ? parse(told) : undefined;
    if (hop) return hop;
    throw new ServiceError(
      'UNAUTHORIZED',
      `the header ${HOP_HEADER} is for replicas with the same cluster.secret`,
    );
  }

  #seal(told: string, { method, url }: HopTarget): Buffer {
    return createHmac('sha256', this.#secret).update(`${method}\n${url}\n${told}`, 'utf8').digest();
  }
}

/** Undefined for what a replica of another version may tell. */
function parse(told: string): Hop | undefined {
  const value = parseJson(Buffer.from(told, 'base64url').toString('utf8'));
  if (typeof value !== 'object' || value === null) return undefined;
  const { from, requestId, tokenName, socketBase } = value as Readonly<Record<string, unknown>>;
  if (typeof from !== 'string' || typeof requestId !== 'string' || typeof socketBase !== 'string')
    return undefined;
  if (tokenName !== undefined && typeof tokenName !== 'string') return undefined;
  return { from: replicaId(from), requestId, tokenName, socketBase };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
