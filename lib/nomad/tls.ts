import { readFile } from 'node:fs/promises';
import { messageOf, ServiceError } from '../base/errors.js';
import type { NomadConfig } from '../config/config.js';

export type TlsConfig = Pick<
  NomadConfig,
  'caCert' | 'clientCert' | 'clientKey' | 'tlsServerName' | 'skipVerify'
>;

/** Options of `tls.connect`, as HTTPS requests and exec sockets use them. */
export interface TlsOptions {
  readonly rejectUnauthorized: boolean;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
}

/** Reads the PEM files. Rejects with INVALID_CONFIG, naming the option, where one is missing or half a pair is given. */
export async function loadTls(config: TlsConfig): Promise<TlsOptions> {
  const { clientCert, clientKey, tlsServerName } = config;
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    throw new ServiceError(
      'INVALID_CONFIG',
      'nomad.clientCert and nomad.clientKey belong together, and only one of them is set',
    );
  }
  const [ca, cert, key] = await Promise.all([
    readPem('nomad.caCert', config.caCert),
    readPem('nomad.clientCert', clientCert),
    readPem('nomad.clientKey', clientKey),
  ]);
  return {
    rejectUnauthorized: !config.skipVerify,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(tlsServerName !== undefined && { servername: tlsServerName }),
  };
}

async function readPem(option: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw new ServiceError('INVALID_CONFIG', `${option} cannot be read: ${messageOf(error)}`, {
      cause: error,
      details: { option, path },
    });
  }
}
