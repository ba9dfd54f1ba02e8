import { expect } from 'chai';
import { eventually } from '../support/waiting.js';
import { sleeper } from './support/raw-agent.js';
import { ScheduledAgent } from './support/scheduled-agent.js';

describe('draining of the embedded agent', () => {
  let raw: ScheduledAgent;
  let node: string;

  beforeEach(async () => {
    raw = await ScheduledAgent.begin();
    [{ ID: node }] = await raw.get<[{ ID: string }]>('/v1/nodes');
    await raw.register(sleeper('3-drain'));
    await raw.running('3-drain');
  });

  afterEach(() => raw.stop());

  const drain = (deadlineNs: number): Promise<unknown> =>
    raw.request('POST', `/v1/node/${node}/drain`, {
      DrainSpec: { Deadline: deadlineNs },
      MarkEligible: false,
    });

  const eligible = (): Promise<unknown> =>
    raw.request('POST', `/v1/node/${node}/eligibility`, { Eligibility: 'eligible' });

  it('leaves batch jobs alone until the deadline, then moves them away', async () => {
    await drain(5e9);
    const [row] = await raw.get<[{ Drain: boolean; SchedulingEligibility: string }]>('/v1/nodes');
    expect(row).to.include({ Drain: true, SchedulingEligibility: 'ineligible' });
    await raw.clock.advance(4_900);
    expect(await raw.statusesOf('3-drain')).to.deep.equal(['running/run']);
    await raw.clock.advance(200);
    await raw.settled(
      'the stop',
      () => raw.statusesOf('3-drain'),
      (all) => all.includes('complete/stop'),
    );
    const [stopped] = await raw.allocations('3-drain');
    expect(stopped?.DesiredDescription).to.equal('alloc is being migrated');
    const [after] = await raw.get<[{ Drain: boolean; SchedulingEligibility: string }]>('/v1/nodes');
    expect(after).to.include({ Drain: false, SchedulingEligibility: 'ineligible' });
  });

  it('blocks what is registered meanwhile, and places it once the node is eligible', async () => {
    await drain(-1);
    await raw.register(sleeper('3-wait'));
    const all = await raw.settled(
      'the block',
      () => raw.evaluationsOf('3-wait'),
      (one) => one.length === 2,
    );
    expect(all[0]?.FailedTGAllocs?.['default-group']).to.include({ NodesEvaluated: 0, NodesInPool: 0 });
    await eligible();
    await raw.running('3-wait');
  });

  it('tells the migration as a real server does', async () => {
    const stream = await raw.events('?topic=Allocation:3-drain&topic=Evaluation:3-drain&topic=Node');
    await drain(-1);
    await raw.settled(
      'the stop',
      () => raw.statusesOf('3-drain'),
      (all) => all.includes('complete/stop'),
    );
    await eventually('the second look', () => {
      const complete = stream.events.filter(
        ({ Index, Payload }) => Index > 5 && Payload.Evaluation?.Status === 'complete',
      );
      return complete.length === 2;
    });
    const told = stream.events
      .filter(({ Index, Topic }) => Index > 5 && Topic !== 'Node')
      .map(({ Type, Payload: { Allocation, Evaluation } }) =>
        Allocation
          ? `${Type} ${Allocation.ClientStatus}/${Allocation.DesiredStatus}`
          : `${Type} ${Evaluation?.Status}`,
      );
    expect(told).to.deep.equal([
      'AllocationUpdateDesiredStatus running/run',
      'AllocationUpdateDesiredStatus pending',
      'EvaluationUpdated blocked',
      'PlanResult pending',
      'PlanResult running/stop',
      'EvaluationUpdated complete',
      'AllocationUpdated complete/stop',
      // The batch job counts as done: it ended without a failure before it found a new place.
      'EvaluationUpdated complete',
    ]);
    await stream.close();
  });
});
