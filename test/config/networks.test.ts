import { expect } from 'chai';
import { createNetworks, isNetwork } from '../../lib/config/networks.js';

describe('networks', () => {
  it('are addresses, with or without the bits that count', () => {
    for (const text of ['10.0.0.0/8', '192.0.2.1', '0.0.0.0/0', '::1', '2001:db8::/32', '::/0']) {
      expect(isNetwork(text), text).to.equal(true);
    }
    for (const text of [
      '',
      '10.0.0.0/33',
      '::/129',
      '10.0.0/8',
      'localhost',
      '10.0.0.0/8/8',
      '1.2.3.4/',
      'fe80::1%lo',
    ]) {
      expect(isNetwork(text), text).to.equal(false);
    }
  });

  it('hold their addresses in every spelling, and no others', () => {
    const networks = createNetworks(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32']);
    for (const address of ['10.255.0.1', '::ffff:10.1.2.3', '192.0.2.1', '2001:DB8:0::5']) {
      expect(networks.has(address), address).to.equal(true);
    }
    for (const address of ['11.0.0.1', '192.0.2.2', '2001:db9::', '', 'unknown', '10.0.0.1:80', '_hidden']) {
      expect(networks.has(address), address).to.equal(false);
    }
    expect(createNetworks([]).has('127.0.0.1')).to.equal(false);
  });
});
