import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { Lives } from '../../lib/runners/lives.js';
import type { Changes, Runner } from '../../lib/runners/state.js';
import { commit, createState } from '../../lib/runners/state.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import { CountingMap } from '../support/counting-map.js';
import { anEnvironment } from '../support/environments.js';
import { Truth } from '../support/truth.js';

describe('the lives of many runners', () => {
  it('cost one event a look at its own runner, however many there are', () => {
    const truth = new Truth();
    const environment = anEnvironment({ prewarmingPoolSize: 50 });
    truth.setTemplate(environment);
    for (let n = 0; n < 50; n += 1) {
      const id = `7-00000000-0000-4000-8000-${String(n).padStart(12, '0')}` as RunnerId;
      truth.register(id, environment.id, environment.specHash);
      truth.run(truth.newest(id)!.id);
    }
    const state = createState();
    const lives = new Lives(state);
    const step = (observation: Parameters<typeof reconcile>[1]): Changes => {
      const context = {
        now: 0,
        startTimeoutMs: 1,
        orphanTimeoutMs: 600_000,
        newRunnerId: () => '' as RunnerId,
        random: () => 0,
      };
      const { changes } = reconcile(state, observation, context);
      commit(state, changes);
      return changes;
    };
    lives.follow(step({ kind: 'listing', listing: truth.listing(0) }));
    const members = new CountingMap<RunnerId, Runner>(state.members.get(environment.id));
    state.members.set(environment.id, members);
    let told = 0;
    lives.listen({ ready: () => (told += 1) });
    expect([told, members.walks]).to.deep.equal([50, 1]);
    const [first] = truth.allocations.values();
    truth.restart(first!.id);
    for (const observation of truth.said.slice(-2)) {
      const changes = step(observation);
      const { walks } = members;
      lives.follow(changes);
      expect(members.walks).to.equal(walks);
    }
    expect(told).to.equal(51);
  });
});
