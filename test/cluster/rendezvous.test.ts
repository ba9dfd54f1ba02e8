import { expect } from 'chai';
import fc from 'fast-check';
import { replicaId } from '../../lib/base/ids.js';
import { Rendezvous } from '../../lib/cluster/rendezvous.js';
import { seededRandom } from './support/simulated-world.js';

const random = seededRandom(7);
const hex = (digits: number): string =>
  Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
const names = Array.from({ length: 10_000 }, () => `10-${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`);
const ids = ['host_7200', 'host_7201', 'host_7202', 'other_7200', 'x'].map(replicaId);

describe('Rendezvous', () => {
  it('gives each its share of the names, within 5 percent', () => {
    const shares = new Map(ids.map((id) => [id, 0]));
    const rendezvous = new Rendezvous(ids);
    for (const name of names) {
      const id = rendezvous.assignee(name);
      if (id !== undefined) shares.set(id, (shares.get(id) ?? 0) + 1);
    }
    for (const share of shares.values()) expect(share).to.be.within(1900, 2100);
  });

  it('moves only the names of the one that goes', () => {
    const all = new Rendezvous(ids);
    const [gone, ...rest] = ids;
    const without = new Rendezvous(rest);
    for (const name of names) {
      const before = all.assignee(name);
      if (before !== gone) expect(without.assignee(name)).to.equal(before);
    }
  });

  it('gives the same answer to all, in whatever order they know each other', () => {
    const anyIds = fc.uniqueArray(fc.stringMatching(/^[a-z0-9_]{1,40}$/), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(anyIds, fc.string(), (known, name) => {
        const [one, other] = [known, [...known].reverse()].map((each) => new Rendezvous(each.map(replicaId)));
        const assignee = one?.assignee(name);
        expect(known).to.include(assignee);
        expect(other?.assignee(name)).to.equal(assignee);
      }),
    );
  });

  it('agrees with every version of itself', () => {
    const rendezvous = new Rendezvous(ids);
    const some = ['10-a', '10-b', '10-c', '10-d', '10-e', ''].map((name) => rendezvous.assignee(name));
    expect(some).to.deep.equal(['host_7202', 'host_7201', 'host_7201', 'x', 'host_7202', 'x']);
  });

  it('names nobody where nobody is', () => {
    expect(new Rendezvous([]).assignee('x')).to.equal(undefined);
  });
});
