import { expect } from 'chai';
import { environmentId } from '../../lib/base/ids.js';
import { createEnvironment } from '../../lib/environments/environment.js';
import { UnfitEnvironments } from '../../lib/runners/unfit.js';

const environment = (image: string, prewarmingPoolSize = 1) =>
  createEnvironment({
    id: environmentId(1),
    image,
    prewarmingPoolSize,
    cpuLimit: 20,
    memoryLimit: 64,
    networkAccess: false,
    exposedPorts: [],
    name: undefined,
    user: undefined,
    environment: {},
  });

describe('UnfitEnvironments', () => {
  it('keeps a reason for as long as the specification is the same, and tells what is news', () => {
    const unfit = new UnfitEnvironments();
    expect(unfit.reasonOf(environment('a'))).to.equal(undefined);
    expect(unfit.report(environment('a'), 'no user')).to.equal(true);
    expect(unfit.report(environment('a'), 'no user')).to.equal(false);
    expect(unfit.reasonOf(environment('a', 9))).to.equal('no user');
    expect(unfit.reasonOf(environment('b'))).to.equal(undefined);
    expect(unfit.report(environment('b'), 'no user')).to.equal(true);
    expect(unfit.reasonOf(environment('a'))).to.equal(undefined);
  });
});
