import { expect } from 'chai';
import { systemRandomness } from '../../lib/base/ids.js';
import { newEvaluation } from '../../lib/dev-agent/scheduler/evaluations.js';
import { canonicalJob } from '../../lib/dev-agent/state/canonical-job.js';
import type { Allocation } from '../../lib/dev-agent/state/records.js';
import { Store } from '../../lib/dev-agent/state/store.js';
import { Timestamps } from '../../lib/dev-agent/time.js';
import { FakeClock } from '../support/fake-clock.js';
import { sleeper } from './support/raw-agent.js';

describe('Store', () => {
  const job = canonicalJob(sleeper('1-a'), 'default');

  function allocation(given: Partial<Allocation>): Allocation {
    return {
      ID: systemRandomness.uuid(),
      Namespace: 'default',
      Name: '1-a.default-group[0]',
      EvalID: '',
      NodeID: '',
      NodeName: '',
      JobID: '1-a',
      Job: job,
      TaskGroup: 'default-group',
      Ports: [],
      DesiredStatus: 'run',
      DesiredDescription: '',
      Migrate: false,
      ClientStatus: 'running',
      ClientDescription: '',
      TaskStates: undefined,
      PreviousAllocation: '',
      NextAllocation: '',
      RescheduleTimes: [],
      CreateIndex: 0,
      ModifyIndex: 0,
      AllocModifyIndex: 0,
      CreateTime: 0,
      ModifyTime: 0,
      ...given,
    };
  }

  it('forgets what ended long ago, and nothing that is still wanted or still ending', () => {
    const store = new Store(new Timestamps(new FakeClock()));
    const kept = [
      allocation({}),
      allocation({ DesiredStatus: 'stop', ClientStatus: 'running' }),
      allocation({ JobID: '1-b', DesiredStatus: 'stop', ClientStatus: 'pending' }),
    ];
    for (const one of kept) store.apply('PlanResult', (tx) => tx.putPlannedAllocation(one));
    for (let count = 0; count < 5000; count += 1) {
      store.apply('PlanResult', (tx) => {
        tx.putPlannedAllocation(
          allocation({ JobID: `1-${count}`, DesiredStatus: 'stop', ClientStatus: 'complete' }),
        );
        const given = {
          Namespace: 'default',
          JobID: '1-a',
          Type: 'batch',
          Priority: 50,
          TriggeredBy: 'x',
        } as const;
        tx.putEvaluation({ ...newEvaluation(systemRandomness, given), Status: 'complete' });
      });
    }
    expect([...store.allocations()].length).to.be.within(2000, 2010);
    expect(store.evaluationsOf('default', '1-a')).to.have.length(2000);
    for (const { ID } of kept) expect(store.allocation(ID)?.ID).to.equal(ID);
  });

  it('keeps the last allocation of a job that exists, so that the job does not seem new', () => {
    const store = new Store(new Timestamps(new FakeClock()));
    store.apply('JobRegistered', (tx) => tx.putJobVersion(job));
    const only = allocation({ ClientStatus: 'failed' });
    store.apply('PlanResult', (tx) => tx.putPlannedAllocation(only));
    for (let count = 0; count < 3000; count += 1) {
      const other = allocation({ JobID: `1-${count}`, ClientStatus: 'complete' });
      store.apply('PlanResult', (tx) => tx.putPlannedAllocation(other));
    }
    expect(store.allocation(only.ID)?.ID).to.equal(only.ID);
  });

  it('counts what allocations take of the node, and gives it back once', () => {
    const store = new Store(new Timestamps(new FakeClock()));
    const port = { Label: 'p', To: 80, Value: 25_000, HostNetwork: 'default' };
    const one = store.apply('PlanResult', (tx) => tx.putPlannedAllocation(allocation({ Ports: [[port]] })));
    expect([store.usage.cpuMhz, store.usage.isPortTaken(25_000)]).to.deep.equal([10, true]);
    const stopped = store.apply('PlanResult', (tx) =>
      tx.putPlannedAllocation({ ...one, DesiredStatus: 'stop' }),
    );
    store.apply('AllocationUpdated', (tx) =>
      tx.putClientAllocation({ ...stopped, ClientStatus: 'complete' }),
    );
    expect([store.usage.cpuMhz, store.usage.isPortTaken(25_000)]).to.deep.equal([0, false]);
  });
});

describe('Timestamps', () => {
  it('never gives the same moment twice, not even within a millisecond', async () => {
    const clock = new FakeClock();
    const timestamps = new Timestamps(clock);
    const moments = Array.from({ length: 500 }, () => timestamps.now());
    await clock.advance(1);
    moments.push(timestamps.now());
    expect(new Set(moments.map(({ rfc3339 }) => rfc3339)).size).to.equal(501);
    expect(new Set(moments.map(({ ns }) => ns)).size).to.equal(501);
    expect(moments[0]?.rfc3339).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
  });
});
