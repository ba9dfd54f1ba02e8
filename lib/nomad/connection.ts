import type { ClientRequest } from 'node:http';
import { deadline, reasonOf } from '../base/abort.js';
import type { Deadline } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { ServiceError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { Slots } from '../base/slots.js';
import type { NomadConfig } from '../config/config.js';
import { Addresses } from './addresses.js';
import type { Asked } from './errors.js';
import { loadTls } from './tls.js';
import type { TlsOptions } from './tls.js';

/** The part of the configuration that the Nomad client uses. */
export type NomadClientConfig = Omit<NomadConfig, 'network'>;

export interface NomadClientDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

/** How one attempt at one address ended. `resend` says when the next address may be tried. */
export type Attempt<T> =
  | { readonly value: T }
  | { readonly error: ServiceError; readonly resend: 'never' | 'if-repeatable' | 'always' };

/**
 * What requests, the event stream and exec sockets share on their way to Nomad: addresses, credentials, TLS, the limit
 * of connections, time limits and the end of it all.
 *
 * Invariant: what may have reached a server is sent again only where that is harmless (`repeatable`); what certainly
 * did not, because no connection came about, goes to the next address whatever it is.
 */
export class Connection {
  readonly clock: Clock;
  readonly log: Logger;
  readonly addresses: Addresses;
  /** Aborts with STOPPED. */
  readonly stopSignal: AbortSignal;
  readonly requestTimeoutMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly #config: NomadClientConfig;
  readonly #token: string | undefined;
  readonly #slots: Slots;
  readonly #stop = new AbortController();
  #tls: Promise<TlsOptions> | undefined;

  constructor(config: NomadClientConfig, { clock, log }: NomadClientDeps) {
    this.clock = clock;
    this.log = log;
    this.addresses = new Addresses(config.addresses, log);
    this.stopSignal = this.#stop.signal;
    this.requestTimeoutMs = config.requestTimeout * 1000;
    this.heartbeatTimeoutMs = config.heartbeatTimeout * 1000;
    this.#config = config;
    this.#token = assertToken(config.token);
    this.#slots = new Slots(config.maxConnections);
  }

  /** Ends everything that is under way. */
  abort(): void {
    this.#stop.abort(new ServiceError('STOPPED', 'the Nomad client was stopped'));
  }

  /** Resolves once every connection was given back; meant for after `abort`. */
  async idle(): Promise<void> {
    for (let taken = 0; taken < this.#config.maxConnections; taken += 1) await this.#slots.take();
  }

  url(address: URL, path: string, query: Query = {}): URL {
    const url = new URL(address);
    url.pathname = address.pathname.replace(/\/$/, '') + path;
    const { namespace, region } = this.#config;
    for (const [name, value] of Object.entries({ ...query, namespace, region })) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined) url.searchParams.append(name, String(each));
      }
    }
    return url;
  }

  headers(): Record<string, string> {
    return {
      'User-Agent': 'serai',
      ...(this.#token !== undefined && { 'X-Nomad-Token': this.#token }),
    };
  }

  /** The TLS options; read once, and again after a failure. */
  tls(): Promise<TlsOptions> {
    this.#tls ??= loadTls(this.#config).catch((error: unknown) => {
      this.#tls = undefined;
      throw error;
    });
    return this.#tls;
  }

  /**
   * Takes one of the connections that Nomad allows; waits at most the time limit of a request, then rejects with
   * NOMAD_OVERLOADED.
   */
  async slot(asked: Asked, callerSignal: AbortSignal | undefined): Promise<() => void> {
    using limit = this.#limit('NOMAD_OVERLOADED', `all connections to Nomad are taken, wanted for`, asked);
    return await this.#slots.take(this.#signals(callerSignal, limit.signal));
  }

  /**
   * Tries `attempt` at one address after the other until one answers or nothing may be sent again. Each attempt has the
   * time limit of a request, and a signal that also aborts with the caller's and at the end of the client.
   */
  async overAddresses<T>(
    asked: Asked & { readonly repeatable: boolean; readonly signal?: AbortSignal | undefined },
    attempt: (address: URL, signal: AbortSignal) => Promise<Attempt<T>>,
  ): Promise<T> {
    let last: ServiceError | undefined;
    for (const address of this.addresses.order()) {
      using limit = this.#limit('NOMAD_UNREACHABLE', 'Nomad did not answer in time to', asked);
      const outcome = await attempt(address, this.#signals(asked.signal, limit.signal));
      if ('value' in outcome) return outcome.value;
      this.#throwIfEnded(asked.signal);
      last = limit.signal.aborted ? reasonOf(limit.signal) : outcome.error;
      if (outcome.resend === 'never') throw last;
      this.addresses.failed(address, last.message);
      if (outcome.resend === 'if-repeatable' && !asked.repeatable) throw last;
    }
    throw last ?? new ServiceError('ILLEGAL_STATE', 'there is no Nomad address');
  }

  #limit(code: 'NOMAD_UNREACHABLE' | 'NOMAD_OVERLOADED', sentence: string, asked: Asked): Deadline {
    const { method, path } = asked;
    const seconds = this.requestTimeoutMs / 1000;
    return deadline(this.clock, this.requestTimeoutMs, code, `${sentence} ${method} ${path} (${seconds} s)`);
  }

  #signals(...signals: (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.stopSignal, ...signals.filter((signal) => signal !== undefined)]);
  }

  #throwIfEnded(callerSignal: AbortSignal | undefined): void {
    if (callerSignal?.aborted) throw reasonOf(callerSignal);
    if (this.stopSignal.aborted) throw reasonOf(this.stopSignal);
  }
}

/** Follows a request's socket, to know whether anything of the request can have left this machine. */
export class Departure {
  #connected = false;
  #reused = false;

  watch(request: ClientRequest): void {
    request.once('socket', (socket) => {
      if (!socket.connecting) {
        this.#connected = true;
        this.#reused = request.reusedSocket;
        return;
      }
      // A TLS socket announces `connect` too, before its handshake: taken for sent, to be on the safe side.
      socket.once('connect', () => {
        this.#connected = true;
      });
    });
  }

  /** False while nothing can have reached the server. */
  get happened(): boolean {
    return this.#connected;
  }

  /** True where the request went over a connection that was kept from an earlier one and may have died unnoticed. */
  get onKeptConnection(): boolean {
    return this.#reused;
  }
}

/** The token, or undefined for none. One that no header can carry is refused here, where it is not printed. */
function assertToken(token: string | undefined): string | undefined {
  if (token === undefined || token === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ServiceError('INVALID_CONFIG', 'nomad.token holds a character that no HTTP header can carry');
}
