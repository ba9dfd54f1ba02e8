import type { AuthConfig, Config } from './config.js';
import type { ConfigFault } from './faults.js';
import { isEveryAddress, isLoopback, mayListen } from './loopback.js';
import { isNetwork } from './networks.js';
import { allTokens, hasTokens } from './tokens.js';

/** What is wrong with values together that are right one by one. */
export function crossFaults(config: Config): ConfigFault[] {
  const faults: ConfigFault[] = [];
  if (!mayListen(config)) {
    faults.push({
      key: 'server.host',
      value: JSON.stringify(config.server.host),
      expected:
        'a loopback address, as it has to be without a token (auth.token, auth.tokens) or auth.allowAnonymous',
    });
  }
  const { certificate, key } = config.server.tls;
  const { clientCert, clientKey } = config.nomad;
  faults.push(
    ...halfPair(['server.tls.certificate', certificate], ['server.tls.key', key]),
    ...halfPair(['nomad.clientCert', clientCert], ['nomad.clientKey', clientKey]),
  );
  const { publicUrl, trustedProxies, maxBodyBytes, maxSpoolBytes } = config.server;
  if (maxSpoolBytes < maxBodyBytes) {
    faults.push({
      key: 'server.maxSpoolBytes',
      value: String(maxSpoolBytes),
      expected: `at least server.maxBodyBytes (${maxBodyBytes})`,
    });
  }
  if (publicUrl !== undefined && !URL.canParse(publicUrl)) {
    faults.push({ key: 'server.publicUrl', value: JSON.stringify(publicUrl), expected: 'an address' });
  }
  const strangers = trustedProxies.filter((each) => !isNetwork(each));
  if (strangers.length > 0) {
    faults.push({
      key: 'server.trustedProxies',
      value: strangers.join(', '),
      expected: 'an address or a network such as 10.0.0.0/8',
    });
  }
  return [...faults, ...clusterFaults(config), ...tokenFaults(config.auth)];
}

/** The others have to reach a service that is one of several, at an address that is its own. */
function clusterFaults({ cluster: { secret, address }, server: { host } }: Config): ConfigFault[] {
  if (address !== undefined && !URL.canParse(address)) {
    return [{ key: 'cluster.address', value: JSON.stringify(address), expected: 'an address' }];
  }
  if (secret === undefined || address !== undefined || !isEveryAddress(host)) return [];
  return [
    {
      key: 'cluster.address',
      expected: `the address at which other services reach this one, since it listens on all of them (server.host ${host}) and cluster.secret is set`,
    },
  ];
}

type Half = readonly [key: string, value: string | undefined];

function halfPair(certificate: Half, key: Half): ConfigFault[] {
  const missing = [certificate, key].filter(([, value]) => value === undefined);
  return missing.length !== 1
    ? []
    : missing.map(([name]) => ({
        key: name,
        expected: 'to be given together with its other half (a certificate needs its key)',
      }));
}

/** What is no fault, and yet hardly meant. */
export function crossWarnings(config: Config): string[] {
  return [...exposureWarnings(config), ...clusterWarnings(config)];
}

function clusterWarnings({ cluster: { secret, address } }: Config): string[] {
  if (secret !== undefined || address === undefined) return [];
  return [
    'cluster.address is set and cluster.secret is not: the service takes itself to be alone on its Nomad',
  ];
}

function exposureWarnings({ server, auth }: Config): string[] {
  const hosts = server.publicUrl === undefined ? [] : [new URL(server.publicUrl).hostname];
  const isPublic = server.trustedProxies.length > 0 || !hosts.every(isLoopback);
  if (!isPublic || hasTokens(auth) || auth.allowAnonymous) return [];
  return [
    'server.publicUrl or server.trustedProxies is set and no token is: requests from other machines will be refused',
  ];
}

/** Names tell tokens apart in the log, and a token tells who it is: neither may stand for two. */
function tokenFaults(auth: AuthConfig): ConfigFault[] {
  const all = allTokens(auth);
  return all.flatMap(({ name, token }, index) => {
    const before = all.slice(0, index);
    const twin = before.find((other) => other.token === token);
    if (before.some((other) => other.name === name)) {
      return [{ key: 'auth.tokens', expected: `different names; ${JSON.stringify(name)} is there twice` }];
    }
    return twin
      ? [{ key: 'auth.tokens', expected: `different tokens; ${twin.name} and ${name} are the same` }]
      : [];
  });
}
