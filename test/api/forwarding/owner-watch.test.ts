import { expect } from 'chai';
import { watchOwner } from '../../../lib/api/forwarding/owner-watch.js';
import { replicaId } from '../../../lib/base/ids.js';
import { FakeClock } from '../../support/fake-clock.js';
import { FakeCluster } from '../../support/fake-cluster.js';

describe('the watch of an owner', () => {
  const owner = replicaId('far');
  let clock: FakeClock;
  let cluster: FakeCluster;
  let dead: number;

  beforeEach(() => {
    clock = new FakeClock();
    cluster = new FakeCluster('near');
    cluster.add(owner, 'http://far.test');
    dead = 0;
  });

  function watch(): () => void {
    const connection = (): undefined => undefined;
    return watchOwner({ cluster, owner, clock, silenceMs: 5_000, connection, onDead: () => (dead += 1) });
  }

  it('tells once of one that counts as dead and is silent, and leaves nothing behind', async () => {
    watch();
    await clock.advance(60_000);
    cluster.remove(owner);
    await clock.advance(4_999);
    expect(dead).to.equal(0);
    await clock.advance(60_000);
    expect([dead, cluster.listeners, clock.armed]).to.deep.equal([1, 0, 0]);
  });

  it('sees that it is dead already when it begins', async () => {
    cluster.remove(owner);
    watch();
    await clock.advance(5_000);
    expect(dead).to.equal(1);
  });

  it('leaves one alone that lives again in time', async () => {
    const unwatch = watch();
    cluster.remove(owner);
    await clock.advance(4_999);
    cluster.add(owner, 'http://far.test');
    await clock.advance(60_000);
    unwatch();
    expect([dead, cluster.listeners, clock.armed]).to.deep.equal([0, 0, 0]);
  });
});
