import { rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import type { CertificatePair } from '../../../lib/api/listening/certificate.js';
import { ServerCertificate } from '../../../lib/api/listening/certificate.js';
import { CertificateFolder, pem } from '../../support/certificates.js';
import { FakeClock } from '../../support/fake-clock.js';
import { RecordingLogger } from '../../support/test-api.js';
import { eventually } from '../../support/waiting.js';

describe('ServerCertificate', () => {
  let folder: CertificateFolder;
  let clock: FakeClock;
  let log: RecordingLogger;
  let used: string[];
  let certificate: ServerCertificate;

  beforeEach(() => {
    folder = new CertificateFolder();
    clock = new FakeClock();
    log = new RecordingLogger();
    used = [];
    const use = ({ cert }: CertificatePair): void => void used.push(cert.toString());
    certificate = new ServerCertificate({ files: folder, clock, log, use });
  });

  afterEach(async () => {
    await certificate.stop();
    folder[Symbol.dispose]();
  });

  /** Lets one look at the files pass. */
  async function look(): Promise<void> {
    await clock.advance(10_000);
    await eventually('the end of the look', () => clock.armed === 1);
  }

  const warnings = (): number => log.lines.filter(({ level }) => level === 'warn').length;

  it('hands out the pair at its start, and another one once the files hold it', async () => {
    await certificate.start();
    await look();
    expect(used).to.deep.equal([pem('server.pem')]);
    folder.put('client', 'client');
    await look();
    await look();
    expect(used).to.deep.equal([pem('server.pem'), pem('client.pem')]);
    expect(log.lines.map(({ level, message }) => `${level} ${message}`)).to.deep.equal([
      'info a new certificate is in use',
    ]);
  });

  it('waits for the second file of a renewal without a word', async () => {
    await certificate.start();
    folder.put('client', 'server');
    await look();
    folder.put('client', 'client');
    await look();
    expect(used).to.have.length(2);
    expect(warnings()).to.equal(0);
  });

  it('keeps the old pair while the files hold none that can be used, and warns once of each fault', async () => {
    await certificate.start();
    const faults = [
      () => folder.put('client', 'server'),
      () => writeFileSync(folder.certificate, 'no PEM'),
      () => rmSync(folder.key),
    ];
    for (const [index, make] of faults.entries()) {
      make();
      for (let count = 0; count < 4; count += 1) await look();
      expect(warnings()).to.equal(index + 1);
    }
    expect(used).to.have.length(1);
    folder.put('server', 'server');
    await look();
    expect(used, 'the old one again is no change').to.have.length(1);
    folder.put('client', 'server');
    for (let count = 0; count < 2; count += 1) await look();
    expect(warnings(), 'the first fault again, after it was gone').to.equal(4);
    expect(JSON.stringify(log.lines)).not.to.contain('PRIVATE KEY');
  });

  it('cannot start with a pair that cannot be used, and names the key', async () => {
    folder.put('client', 'server');
    await certificate.start().then(
      () => expect.fail('it started'),
      (error: unknown) => {
        expect(error).to.have.property('code', 'INVALID_CONFIG');
        expect(error)
          .to.have.property('message')
          .that.matches(/^server\.tls\.certificate and server\.tls\.key /);
      },
    );
    expect(certificate.state).to.equal('stopped');
    expect(used).to.deep.equal([]);
  });

  it('leaves nothing behind', async () => {
    await certificate.start();
    expect(clock.armed).to.equal(1);
    const stopping = certificate.stop();
    expect(certificate.stop()).to.equal(stopping);
    await stopping;
    expect(clock.armed).to.equal(0);
    folder.put('client', 'client');
    await clock.advance(60_000);
    expect(used).to.have.length(1);
  });

  it('ends a start that it overtakes', async () => {
    const starting = certificate.start();
    await certificate.stop();
    await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => expect(error).to.have.property('code', 'STOPPED'),
    );
    expect(clock.armed).to.equal(0);
  });
});
