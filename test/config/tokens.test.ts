import { expect } from 'chai';
import type { TokenConfig } from '../../lib/config/config.js';
import { SCOPES } from '../../lib/base/scopes.js';
import { allTokens, hasTokens, tokenWith } from '../../lib/config/tokens.js';

describe('tokens', () => {
  const tokens: readonly TokenConfig[] = [
    { name: 'a', token: 'for-a', scopes: ['read'] },
    { name: 'b', token: 'for-b', scopes: ['runners', 'read'] },
  ];

  it('are those of the list and, with every scope, the one beside it', () => {
    expect(allTokens({ token: 'one', tokens })).to.deep.equal([
      { name: 'default', token: 'one', scopes: SCOPES },
      ...tokens,
    ]);
    expect(hasTokens({ token: undefined, tokens })).to.equal(true);
    expect(hasTokens({ token: 'one', tokens: [] })).to.equal(true);
    expect(hasTokens({ token: undefined, tokens: [] })).to.equal(false);
  });

  it('are found by what they have to be for', () => {
    expect(tokenWith({ token: undefined, tokens }, ['read', 'runners'])).to.equal('for-b');
    expect(tokenWith({ token: undefined, tokens }, ['environments'])).to.equal(undefined);
    expect(tokenWith({ token: 'one', tokens }, ['environments', 'read'])).to.equal('one');
  });
});
