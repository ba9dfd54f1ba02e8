import http from 'node:http';
import https from 'node:https';
import type { ClientRequest, RequestOptions } from 'node:http';
import axios from 'axios';
import type { AxiosInstance, AxiosResponse, ResponseType } from 'axios';
import type { ServiceError } from '../base/errors.js';
import { hasCode } from '../base/errors.js';
import type { Attempt, Connection, Query } from './connection.js';
import { Departure } from './connection.js';
import type { Asked } from './errors.js';
import { fromFailure, fromStatus, placeOf, protocolError } from './errors.js';

export interface Call extends Asked {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Escaped, from `/v1` on. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Whether sending it twice is harmless. Default: for GET only. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  /** Parsed JSON; undefined for an empty body. */
  readonly body: unknown;
  /** Where the next page begins. */
  readonly nextToken: string | undefined;
}

/** Idle connections kept for later; few, since they count against Nomad's limit beside those in use. */
const KEPT_CONNECTIONS = 8;
const KEPT_FOR_MS = 15_000;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const PAGE_SIZE = '500';

/**
 * Requests to Nomad's HTTP API over axios, with keep-alive.
 *
 * Redirects are not followed and environment proxies not used: the token goes to the configured addresses only, and
 * exec sockets would not take that way either. Answers are not compressed.
 */
export class Http {
  readonly #connection: Connection;
  #agents: Promise<{ http: http.Agent; https: https.Agent }> | undefined;
  readonly #axios: AxiosInstance = axios.create({
    proxy: false,
    decompress: false,
    validateStatus: () => true,
    // Bodies are texts already; axios would read each again to see whether it is JSON.
    transformRequest: (data: unknown) => data,
    transformResponse: (data: unknown) => data,
  });

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves with the answer of a successful status, or rejects as `Nomad` promises. */
  async request(call: Call): Promise<Answer> {
    const giveBack = await this.#connection.slot(call, call.signal);
    try {
      const repeatable = call.repeatable ?? call.method === 'GET';
      return await this.#connection.overAddresses({ ...call, repeatable }, async (address, signal) => {
        const first = await this.#attempt(call, address, signal);
        const wasStale = 'error' in first && first.wasStale && repeatable && !signal.aborted;
        return wasStale ? await this.#attempt(call, address, signal) : first;
      });
    } finally {
      giveBack();
    }
  }

  /** As `request`, but a 404 with Nomad's own text `absent` is undefined. Any other 404 is no proof of absence. */
  async find(call: Call, absent: string): Promise<Answer | undefined> {
    try {
      return await this.request(call);
    } catch (error) {
      if (hasCode(error, 'NOMAD_NOT_FOUND') && bodyOf(error).trim() === absent) return undefined;
      throw error;
    }
  }

  /** All pages of a list, each item decoded. */
  async list<T>(call: Call, decode: (body: unknown) => T[]): Promise<T[]> {
    const items: T[] = [];
    let next: string | undefined;
    do {
      const query = { ...call.query, per_page: PAGE_SIZE, next_token: next };
      const answer: Answer = await this.request({ ...call, query });
      for (const item of decode(answer.body)) items.push(item);
      if (next !== undefined && answer.nextToken === next) {
        throw protocolError('a page names itself as the next', { path: call.path });
      }
      next = answer.nextToken;
    } while (next !== undefined);
    return items;
  }

  /**
   * Sends a request whose response body is read by the caller. `signal` ends it at any time; no time limit but the
   * caller's. `onSent` is told once the request was written to its socket.
   */
  async open(
    address: URL,
    call: Call,
    { signal, onSent }: { readonly signal: AbortSignal; readonly onSent: () => void },
  ): Promise<AxiosResponse<NodeJS.ReadableStream>> {
    return await this.#send<NodeJS.ReadableStream>(address, call, signal, 'stream', (request) => {
      request.once('finish', onSent);
    });
  }

  /** Closes kept connections. */
  async close(): Promise<void> {
    if (!this.#agents) return;
    const agents = await this.#agents.catch(() => undefined); // never built: nothing to close
    agents?.http.destroy();
    agents?.https.destroy();
  }

  async #attempt(
    call: Call,
    address: URL,
    signal: AbortSignal,
  ): Promise<Attempt<Answer> & { readonly wasStale?: boolean }> {
    const departure = new Departure();
    let response: AxiosResponse<Buffer>;
    try {
      response = await this.#send<Buffer>(address, call, signal, 'arraybuffer', (request) =>
        departure.watch(request),
      );
    } catch (error) {
      if (hasCode(error, 'INVALID_CONFIG')) throw error;
      const resend = departure.happened ? 'if-repeatable' : 'always';
      return { error: fromFailure(call, error), resend, wasStale: departure.onKeptConnection };
    }
    const text = response.data.toString('utf8');
    if (response.status < 200 || response.status >= 300) {
      const error = fromStatus(call, response.status, text);
      return { error, resend: isForAnother(error) ? 'if-repeatable' : 'never' };
    }
    return { value: { body: parse(call, text), nextToken: headerOf(response, 'x-nomad-nexttoken') } };
  }

  async #send<T>(
    address: URL,
    call: Call,
    signal: AbortSignal,
    responseType: ResponseType,
    onRequest: (request: ClientRequest) => void,
  ): Promise<AxiosResponse<T>> {
    const agents = await this.#builtAgents();
    const secure = address.protocol === 'https:';
    return await this.#axios.request<T>({
      method: call.method,
      url: this.#connection.url(address, call.path, call.query).href,
      headers: {
        ...this.#connection.headers(),
        'Accept-Encoding': 'identity',
        ...(call.body !== undefined && { 'Content-Type': 'application/json' }),
      },
      data: call.body === undefined ? undefined : JSON.stringify(call.body),
      httpAgent: agents.http,
      httpsAgent: agents.https,
      responseType,
      maxContentLength: responseType === 'stream' ? -1 : MAX_ANSWER_BYTES,
      signal,
      // Node's own: it follows no redirect, and tells of the request.
      transport: {
        request(options: RequestOptions, onResponse: (response: http.IncomingMessage) => void) {
          const request = (secure ? https : http).request(options, onResponse);
          onRequest(request);
          return request;
        },
      },
    });
  }

  #builtAgents() {
    this.#agents ??= this.#buildAgents().catch((error: unknown) => {
      this.#agents = undefined;
      throw error;
    });
    return this.#agents;
  }

  async #buildAgents() {
    const options = { keepAlive: true, maxFreeSockets: KEPT_CONNECTIONS, timeout: KEPT_FOR_MS };
    const tls = this.#connection.addresses.secure ? await this.#connection.tls() : {};
    return { http: new http.Agent(options), https: new https.Agent({ ...options, ...tls }) };
  }
}

/** Failures of this one server, which another may not share. */
function isForAnother(error: ServiceError): boolean {
  return hasCode(error, 'NOMAD_OVERLOADED', 'NOMAD_UNREACHABLE');
}

function bodyOf(error: unknown): string {
  const details: unknown = error instanceof Error && 'details' in error ? error.details : undefined;
  const body = typeof details === 'object' && details && 'body' in details ? details.body : undefined;
  return typeof body === 'string' ? body : '';
}

function headerOf(response: AxiosResponse<unknown>, name: string): string | undefined {
  const value: unknown = response.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function parse(asked: Asked, text: string): unknown {
  if (text === '') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    throw protocolError(`the body of ${asked.method} ${asked.path} is no JSON`, placeOf(asked), error);
  }
}
