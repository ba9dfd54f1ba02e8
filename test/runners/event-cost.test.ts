import { expect } from 'chai';
import type { RunnerId } from '../../lib/base/ids.js';
import { IdleOrder } from '../../lib/runners/idle-order.js';
import { JobDocuments } from '../../lib/runners/job-documents.js';
import { Lives } from '../../lib/runners/lives.js';
import type { Observation } from '../../lib/runners/observation.js';
import { reconcile } from '../../lib/runners/reconcile.js';
import type { Grave, Runner } from '../../lib/runners/state.js';
import { commit, createState, runnerOf } from '../../lib/runners/state.js';
import { CountingMap } from '../support/counting-map.js';
import { anEnvironment } from '../support/environments.js';
import { Truth } from '../support/truth.js';

const RUNNERS = 60;
const idOf = (n: number): RunnerId => `7-00000000-0000-4000-8000-${String(n).padStart(12, '0')}` as RunnerId;

/** A full pool whose members are counted on whenever somebody walks over them. */
function fullPool() {
  const environment = anEnvironment({ prewarmingPoolSize: RUNNERS });
  const truth = new Truth();
  truth.setTemplate(environment);
  for (let n = 0; n < RUNNERS; n += 1) {
    truth.register(idOf(n), environment.id, environment.specHash);
    truth.run(truth.newest(idOf(n))!.id);
  }
  const state = createState();
  const parts = [new IdleOrder(state, () => true), new JobDocuments(), new Lives(state)];
  let made = RUNNERS;
  const observe = (observation: Observation): void => {
    const newRunnerId = (): RunnerId => idOf((made += 1));
    const limits = { startTimeoutMs: 300_000, orphanTimeoutMs: 600_000 };
    const { changes } = reconcile(state, observation, { now: 0, ...limits, newRunnerId, random: () => 0.5 });
    commit(state, changes);
    for (const part of parts) part.follow(changes);
  };
  observe({ kind: 'listing', listing: truth.listing(0) });
  const members = new CountingMap<RunnerId, Runner>(state.members.get(environment.id));
  state.members.set(environment.id, members);
  const graves = new CountingMap<RunnerId, Grave>();
  Object.assign(state, { graves });
  return { environment, truth, state, observe, walks: () => members.walks + graves.walks };
}

describe('the cost of an event', () => {
  it('is that of the runner that it names, however many there are: in a whole life of a claim', () => {
    const { truth, state, observe, walks } = fullPool();
    const id = idOf(7);
    const heard = truth.said.length;
    observe({ kind: 'taken', id, timeoutSeconds: 60 });
    truth.claim(id, 60);
    observe({
      kind: 'claim-settled',
      id,
      outcome: { kind: 'written', jobModifyIndex: truth.jobs.get(id)!.writtenAt },
    });
    for (const observation of truth.said.slice(heard)) observe(observation);
    expect(runnerOf(state, id)?.phase.name).to.equal('used');
    observe({ kind: 'released', id, reason: 'returned' });
    truth.purge(id);
    observe({ kind: 'purged', id });
    for (const observation of truth.said.slice(heard)) observe(observation); // once more, and late
    expect(runnerOf(state, id)?.phase.name).to.be.oneOf(['removing', undefined]);
    expect(walks()).to.equal(0);
  });

  it('is as small for the start of a runner, its restart, and what was heard before', () => {
    const { environment, truth, state, observe, walks } = fullPool();
    observe({ kind: 'taken', id: idOf(0), timeoutSeconds: 60 });
    const added = idOf(RUNNERS + 1);
    expect(runnerOf(state, added)?.phase.name).to.equal('starting');
    const heard = truth.said.length;
    truth.register(added, environment.id, environment.specHash);
    observe({ kind: 'registered', id: added });
    truth.run(truth.newest(added)!.id);
    truth.restart(truth.newest(idOf(3))!.id);
    for (const observation of truth.said.slice(heard)) observe(observation);
    expect(runnerOf(state, added)?.phase.name).to.equal('idle');
    for (const observation of truth.said) if (observation.kind !== 'node') observe(observation);
    expect(walks()).to.equal(0);
  });
});
