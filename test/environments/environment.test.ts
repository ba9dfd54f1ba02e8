import { expect } from 'chai';
import { isSameEnvironment } from '../../lib/environments/environment.js';
import { anEnvironment } from '../support/environments.js';

describe('createEnvironment', () => {
  const base = { networkAccess: true, exposedPorts: [80, 443], environment: { A: '1', B: '2' } };
  const environment = anEnvironment(base);

  it('hashes alike whatever the order of ports and variables, and whatever the pool size', () => {
    const other = anEnvironment({
      ...base,
      environment: { B: '2', A: '1' },
      exposedPorts: [443, 80, 443],
      prewarmingPoolSize: 99,
    });
    expect(other.specHash).to.equal(environment.specHash);
  });

  it('hashes differently for each field that makes a runner', () => {
    const changes = [
      { id: 8 },
      { image: 'node:24' },
      { cpuLimit: 101 },
      { memoryLimit: 257 },
      { networkAccess: false },
      { exposedPorts: [80] },
      { name: 'Other' },
      { name: undefined },
      { user: 'me' },
      { environment: { A: '1', B: '3' } },
    ];
    const hashes = changes.map((change) => anEnvironment({ ...base, ...change }).specHash);
    expect(new Set([environment.specHash, ...hashes]).size).to.equal(changes.length + 1);
  });

  it('drops ports where there is no network, which no job could hold', () => {
    const closed = anEnvironment({ networkAccess: false, exposedPorts: [80] });
    expect(closed.exposedPorts).to.deep.equal([]);
    expect(closed.specHash).to.equal(anEnvironment().specHash);
  });

  it('is frozen, and takes no part of what it was made from', () => {
    const variables = { A: '1' };
    const value = anEnvironment({ environment: variables });
    variables.A = '2';
    expect(value.environment).to.deep.equal({ A: '1' });
    expect(Object.isFrozen(value) && Object.isFrozen(value.environment)).to.equal(true);
  });

  it('is the same as another only with the same pool size', () => {
    expect(isSameEnvironment(environment, anEnvironment(base))).to.equal(true);
    expect(isSameEnvironment(environment, anEnvironment({ ...base, prewarmingPoolSize: 3 }))).to.equal(false);
  });
});
