import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

type Pair = 'server' | 'client';

/** The name in the certificate `server` of test/fixtures/tls. */
export const SERVER_NAME = 'server.global.nomad';

function fixture(name: string): string {
  return path.resolve(import.meta.dirname, '../fixtures/tls', name);
}

export function pem(name: string): string {
  return readFileSync(fixture(name), 'utf8');
}

/** A folder with a certificate and its key, either of which a test can replace. */
export class CertificateFolder implements Disposable {
  readonly #folder = mkdtempSync(path.join(os.tmpdir(), 'serai-tls-'));
  readonly certificate = path.join(this.#folder, 'tls.crt');
  readonly key = path.join(this.#folder, 'tls.key');

  constructor(pair: Pair = 'server') {
    this.put(pair, pair);
  }

  /** Settings of a server that uses it. */
  get settings(): Record<string, string> {
    return { SERAI_SERVER_TLS_CERTIFICATE: this.certificate, SERAI_SERVER_TLS_KEY: this.key };
  }

  put(certificate: Pair, key: Pair): void {
    copyFileSync(fixture(`${certificate}.pem`), this.certificate);
    copyFileSync(fixture(`${key}-key.pem`), this.key);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
