import type { Clock } from '../../lib/base/clock.js';
import type { Logger } from '../../lib/base/log.js';
import { silentLogger } from '../../lib/base/log.js';
import { NomadClient } from '../../lib/nomad/client.js';
import type { NomadClientConfig } from '../../lib/nomad/connection.js';
import { FakeClock } from './fake-clock.js';

export interface TestClientOptions extends Partial<NomadClientConfig> {
  readonly clock?: Clock;
  readonly log?: Logger;
}

/** The client's slice of the configuration, with its defaults. */
export function nomadClientConfig(
  addresses: string | readonly string[],
  overrides: Partial<NomadClientConfig> = {},
): NomadClientConfig {
  return {
    addresses: typeof addresses === 'string' ? [addresses] : addresses,
    token: undefined,
    namespace: undefined,
    region: undefined,
    caCert: undefined,
    clientCert: undefined,
    clientKey: undefined,
    tlsServerName: undefined,
    skipVerify: false,
    maxConnections: 90,
    requestTimeout: 10,
    heartbeatTimeout: 75,
    ...overrides,
  };
}

/** A client of the real kind with the defaults of the configuration, on a clock that a test moves. */
export function nomadClient(
  addresses: string | readonly string[],
  { clock = new FakeClock(), log = silentLogger, ...overrides }: TestClientOptions = {},
): NomadClient {
  const config = nomadClientConfig(addresses, overrides);
  return new NomadClient(config, { clock, log });
}
