import { ServiceError } from '../base/errors.js';
import type { Logger } from '../base/log.js';

/**
 * The servers that may be asked, and which of them is asked first.
 *
 * The first one is kept until it fails; then the next takes its place, and stays. Many requests that fail together on
 * one server move on by one place, not by one each.
 */
export class Addresses {
  readonly #addresses: readonly URL[];
  readonly #log: Logger;
  #first: URL;

  /** Throws INVALID_CONFIG for what is no HTTP address. */
  constructor(addresses: readonly string[], log: Logger) {
    this.#addresses = addresses.map(parseAddress);
    this.#log = log;
    const [first] = this.#addresses;
    if (!first) throw new ServiceError('INVALID_CONFIG', 'nomad.addresses is empty');
    this.#first = first;
  }

  /** True where one of them is asked over TLS. */
  get secure(): boolean {
    return this.#addresses.some((address) => address.protocol === 'https:');
  }

  /** The one to ask first. */
  get first(): URL {
    return this.#first;
  }

  /** Every address once, in the order in which to try them. */
  order(): URL[] {
    const first = this.#addresses.indexOf(this.#first);
    return [...this.#addresses.slice(first), ...this.#addresses.slice(0, first)];
  }

  /** Notes that `address` failed: unless another already took its place, it is asked last from now on. */
  failed(address: URL, reason: string): void {
    const next = this.order()[1];
    if (!next || this.#first !== address) return;
    this.#first = next;
    this.#log.warn('a Nomad server failed, the next one is asked', {
      failed: address.host,
      next: next.host,
      reason,
    });
  }
}

function parseAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new ServiceError(
    'INVALID_CONFIG',
    `nomad.addresses holds "${text}", which is no http:// or https:// address`,
  );
}
