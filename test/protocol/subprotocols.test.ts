import { expect } from 'chai';
import fc from 'fast-check';
import { ServiceError } from '../../lib/base/errors.js';
import { parseSubprotocols, tokenSubprotocol } from '../../lib/protocol/subprotocols.js';

describe('parseSubprotocols', () => {
  it('finds the token, wherever it stands, and chooses what is no secret', () => {
    expect(parseSubprotocols(undefined)).to.deep.equal({ token: undefined, chosen: undefined });
    expect(parseSubprotocols('serai.v1')).to.deep.equal({ token: undefined, chosen: 'serai.v1' });
    expect(parseSubprotocols('bearer.YS1i')).to.deep.equal({ token: 'a-b', chosen: undefined });
    for (const field of ['serai.v1, bearer.YS1i', 'bearer.YS1i ,\tserai.v1', 'mqtt,bearer.YS1i,serai.v1']) {
      expect(parseSubprotocols(field), field).to.deep.equal({ token: 'a-b', chosen: 'serai.v1' });
    }
  });

  it('chooses nothing that it does not speak', () => {
    for (const field of ['mqtt', 'Serai.v1', 'serai.v2', 'Bearer.YS1i']) {
      expect(parseSubprotocols(field), field).to.deep.equal({ token: undefined, chosen: undefined });
    }
  });

  it('refuses what is no list of different names', () => {
    for (const field of ['', ',', 'serai.v1,', 'a b', 'serai.v1, serai.v1', 'bearer.YQ==', 'a;b', 'ä']) {
      expect(() => parseSubprotocols(field), field)
        .to.throw(ServiceError)
        .with.property('code', 'INVALID_REQUEST');
    }
  });

  it('reads back any token that was written as a subprotocol', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (token) => {
        expect(parseSubprotocols(`serai.v1, ${tokenSubprotocol(token)}`).token).to.equal(token);
      }),
    );
  });
});
