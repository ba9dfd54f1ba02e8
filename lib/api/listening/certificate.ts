/**
 * The server's certificate and its key, and their replacement while it runs.
 *
 *   in use ── the files hold another pair that fits ──▶ in use
 *      └── they hold something else, twice in a row: one warning, the old pair stays in use
 *
 * The files are read every few seconds and their contents compared, which also works for links that are turned and for
 * file systems without events. Whoever renews a certificate writes two files one after the other, so what does not fit
 * at one look may fit at the next.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { throwIfAborted } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { messageOf, ServiceError } from '../../base/errors.js';
import type { Lifecycle, LifecycleState } from '../../base/lifecycle.js';
import { assertNew } from '../../base/lifecycle.js';
import type { Logger } from '../../base/log.js';

export interface CertificatePair {
  /** PEM, with what signs it. */
  readonly cert: Buffer;
  /** PEM, without a passphrase. */
  readonly key: Buffer;
}

export interface ServerCertificateDeps {
  /** Paths. */
  readonly files: { readonly certificate: string; readonly key: string };
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with the pair to use, at the start and at each change. */
  readonly use: (pair: CertificatePair) => void;
}

/** What a look at the files found. `print` tells two findings apart. */
type Finding =
  | { readonly print: string; readonly pair: CertificatePair }
  | { readonly print: string; readonly problem: ServiceError };

const POLL_MS = 10_000;

export class ServerCertificate implements Lifecycle {
  readonly #deps: ServerCertificateDeps;
  readonly #abort = new AbortController();
  #state: LifecycleState = 'new';
  #print = '';
  /** What did not fit at the last look, and whether that was said. */
  #doubt: { readonly print: string; isTold: boolean } | undefined;
  #loop: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(deps: ServerCertificateDeps) {
    this.#deps = deps;
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Reads the pair and hands it out. INVALID_CONFIG where it cannot be read or does not fit, STOPPED meanwhile. */
  async start(): Promise<void> {
    assertNew('a certificate', this.#state);
    this.#state = 'running';
    const finding = await this.#look();
    throwIfAborted(this.#abort.signal);
    if ('problem' in finding) {
      await this.stop();
      throw finding.problem;
    }
    this.#take(finding.print, finding.pair);
    this.#loop = this.#watch(this.#abort.signal);
  }

  /** Resolves when nothing is being read and no timer is armed. Never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #shutDown(): Promise<void> {
    this.#state = 'stopping';
    this.#abort.abort(new ServiceError('STOPPED', 'the certificate is watched no more'));
    await this.#loop;
    this.#state = 'stopped';
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    for (;;) {
      await clock.sleep(POLL_MS, signal);
      if (signal.aborted) return;
      const finding = await this.#look();
      if (finding.print === this.#print) this.#doubt = undefined;
      else if ('pair' in finding) {
        this.#take(finding.print, finding.pair);
        log.info('a new certificate is in use', { file: this.#deps.files.certificate });
      } else this.#distrust(finding.print, finding.problem);
    }
  }

  #take(print: string, pair: CertificatePair): void {
    this.#print = print;
    this.#doubt = undefined;
    this.#deps.use(pair);
  }

  #distrust(print: string, error: ServiceError): void {
    if (this.#doubt?.print !== print) {
      this.#doubt = { print, isTold: false };
    } else if (!this.#doubt.isTold) {
      this.#doubt.isTold = true;
      this.#deps.log.warn('the new certificate cannot be used, the old one stays in use', { error });
    }
  }

  /** Reads the files and tries what they hold. Never rejects. */
  async #look(): Promise<Finding> {
    const { certificate, key } = this.#deps.files;
    const [cert, secret] = await Promise.allSettled([readFile(certificate), readFile(key)]);
    if (cert.status === 'rejected') return refused('server.tls.certificate', cert.reason, certificate);
    if (secret.status === 'rejected') return refused('server.tls.key', secret.reason, key);
    const pair = { cert: cert.value, key: secret.value };
    const print = printOf(pair);
    try {
      createSecureContext(pair);
      return { print, pair };
    } catch (error) {
      return refused('server.tls.certificate and server.tls.key', error, print);
    }
  }
}

function refused(keys: string, cause: unknown, print: string): Finding {
  const message = `${keys} cannot be used: ${messageOf(cause)}`;
  return { print, problem: new ServiceError('INVALID_CONFIG', message, { cause }) };
}

/** Digests, so that no second copy of the key is kept. */
function printOf({ cert, key }: CertificatePair): string {
  return [cert, key].map((part) => createHash('sha256').update(part).digest('hex')).join();
}
