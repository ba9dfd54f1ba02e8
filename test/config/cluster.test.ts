import { expect } from 'chai';
import { ConfigFolder } from '../support/config-folder.js';

describe('loadConfig, of several services on one Nomad', () => {
  let folder: ConfigFolder;

  beforeEach(() => {
    folder = new ConfigFolder();
  });

  afterEach(() => folder[Symbol.dispose]());

  const secret = { SERAI_CLUSTER_SECRET: 'sixteen-letters!', SERAI_AUTH_TOKEN: 't' };

  it('takes a service without a secret for one that is alone', () => {
    expect(folder.load().config.cluster).to.deep.equal({
      replica: undefined,
      secret: undefined,
      address: undefined,
    });
  });

  it('takes a secret of 16 characters or more, also from a file, and never shows one', () => {
    folder.file('from-a-file-of-its-own\n', 'secret');
    const file = { SERAI_CLUSTER_SECRET: 'file:secret' };
    expect(folder.load({ env: file }).config.cluster.secret).to.equal('from-a-file-of-its-own');
    folder.file('fifteen-letters', 'secret');
    for (const env of [file, { SERAI_CLUSTER_SECRET: 'fifteen-letters' }]) {
      const [fault, ...others] = folder.faultsOf({ env });
      expect(fault).to.match(/^SERAI_CLUSTER_SECRET.*expected at least 16 characters/);
      expect(fault).to.not.include('fifteen');
      expect(others).to.deep.equal([]);
    }
  });

  it('wants an address of a service that listens on all of them', () => {
    for (const host of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0']) {
      const env = { ...secret, SERAI_SERVER_HOST: host };
      expect(folder.faultsOf({ env })[0], host).to.match(/^cluster\.address: expected the address at which/);
      const told = { ...env, SERAI_CLUSTER_ADDRESS: 'http://10.0.0.7:7200' };
      expect(folder.load({ env: told }).config.cluster.address).to.equal('http://10.0.0.7:7200');
      const alone = { SERAI_SERVER_HOST: host, SERAI_AUTH_TOKEN: 't' };
      expect(folder.load({ env: alone }).warnings).to.deep.equal([]);
    }
    for (const host of ['10.0.0.7', '::1', 'serai-1']) {
      expect(folder.load({ env: { ...secret, SERAI_SERVER_HOST: host } }).config.server.host).to.equal(host);
    }
  });

  it('takes no address that a request could not be sent to', () => {
    const addresses = [
      '10.0.0.7:7200',
      'ftp://a',
      'http://a/b',
      'http://u:p@a',
      'http://a?b',
      'http://a:port',
    ];
    for (const address of addresses) {
      const faults = folder.faultsOf({ env: { ...secret, SERAI_CLUSTER_ADDRESS: address } });
      expect(faults, address).to.have.length(1);
    }
  });

  it('warns of an address without a secret', () => {
    const { warnings } = folder.load({ env: { SERAI_CLUSTER_ADDRESS: 'http://10.0.0.7:7200' } });
    expect(warnings.join()).to.match(/cluster\.secret is not/);
  });
});
