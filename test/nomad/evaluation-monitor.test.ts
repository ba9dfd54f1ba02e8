import { expect } from 'chai';
import { ServiceError } from '../../lib/base/errors.js';
import { silentLogger } from '../../lib/base/log.js';
import { EvaluationMonitor } from '../../lib/nomad/evaluation-monitor.js';
import type { Evaluation, PlacementFailure } from '../../lib/nomad/model.js';
import { describePlacementFailure } from '../../lib/nomad/placement.js';
import { FakeClock } from '../support/fake-clock.js';

function evaluation(changes: Partial<Evaluation> = {}): Evaluation {
  return {
    id: 'e1',
    jobId: '7-a',
    status: 'pending',
    statusDescription: '',
    triggeredBy: 'job-register',
    createIndex: 1,
    modifyIndex: 1,
    blockedEvaluation: undefined,
    nextEvaluation: undefined,
    failedGroups: {},
    ...changes,
  };
}

function placementFailure(changes: Partial<PlacementFailure> = {}): PlacementFailure {
  return {
    nodesEvaluated: 3,
    nodesExhausted: 0,
    nodesFiltered: 0,
    exhaustedDimensions: {},
    filteredConstraints: {},
    ...changes,
  };
}

describe('EvaluationMonitor', () => {
  let clock: FakeClock;
  let asked: string[];
  /** What asking answers; a thrown error is a failed question. */
  let answer: (id: string) => Evaluation | undefined;
  let monitor: EvaluationMonitor;

  beforeEach(() => {
    clock = new FakeClock();
    asked = [];
    answer = (id) => evaluation({ id });
    monitor = new EvaluationMonitor({
      evaluations: {
        get: async (id) => {
          asked.push(id);
          return await Promise.resolve(id).then(answer);
        },
      },
      clock,
      randomness: { random: () => 1 },
      log: silentLogger,
    });
  });

  afterEach(() => {
    expect(clock.armed, 'timers left').to.equal(0);
  });

  const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('resolves by the stream without asking', async () => {
    const waiting = monitor.wait('e1');
    monitor.observe(evaluation({ status: 'pending' }));
    const done = evaluation({ status: 'complete', modifyIndex: 2 });
    monitor.observe(done);
    expect(await waiting).to.equal(done);
    await clock.advance(60_000);
    expect(asked).to.deep.equal([]);
  });

  it('resolves by asking where the stream tells nothing [A1-25]', async () => {
    const waiting = monitor.wait('e1');
    await clock.advance(1_000);
    expect(asked).to.deep.equal(['e1', 'e1']);
    answer = (id) => evaluation({ id, status: 'complete' });
    await clock.advance(1_000);
    expect(await waiting).to.include({ status: 'complete' });
  });

  it('asks less and less often', async () => {
    const failing = failureOf(monitor.wait('e1'));
    await clock.advance(60_000);
    await failing;
    expect(asked.length).to.be.within(10, 20);
  });

  it('knows an end that came before anybody waited [A1-25]', async () => {
    monitor.observe(evaluation({ status: 'complete' }));
    expect(await monitor.wait('e1')).to.include({ status: 'complete' });
    expect(asked).to.deep.equal([]);
  });

  it('forgets old ends, not new ones', async () => {
    for (let index = 0; index < 5_000; index += 1) {
      monitor.observe(evaluation({ id: `e${index}`, status: 'complete' }));
    }
    await monitor.wait('e4999');
    const failing = failureOf(monitor.wait('e0', { timeoutMs: 1_000 }));
    await clock.advance(1_000);
    expect(await failing).to.include({ code: 'NOMAD_OVERLOADED' });
  });

  it('settles once however often an end is told, and ignores strangers [A1-24]', async () => {
    const [first, second] = [monitor.wait('e1'), monitor.wait('e1')];
    for (let round = 0; round < 3; round += 1) {
      monitor.observe(evaluation({ status: 'complete' }));
      monitor.observe(evaluation({ id: 'stranger', status: 'failed' }));
      monitor.observe(evaluation({ status: 'failed' }));
    }
    expect(await first).to.include({ status: 'complete' });
    expect(await second).to.include({ status: 'complete' });
  });

  it('follows a failed evaluation to the next, within the same limit [A1-26]', async () => {
    const waiting = monitor.wait('e1');
    await clock.advance(30_000);
    monitor.observe(evaluation({ status: 'failed', nextEvaluation: 'e2' }));
    await clock.advance(1_000);
    expect(asked).to.include('e2');
    monitor.observe(evaluation({ id: 'e2', status: 'complete' }));
    expect(await waiting).to.include({ id: 'e2' });

    const late = failureOf(monitor.wait('e3'));
    await clock.advance(59_000);
    monitor.observe(evaluation({ id: 'e3', status: 'failed', nextEvaluation: 'e4' }));
    await clock.advance(1_000);
    expect(await late).to.include({ code: 'NOMAD_OVERLOADED' });
  });

  it('rejects a placement that failed, with sentence and data', async () => {
    const failedGroups = {
      'default-group': placementFailure({ nodesExhausted: 3, exhaustedDimensions: { memory: 2, cpu: 1 } }),
    };
    const blockedEvaluation = 'e9';
    monitor.observe(evaluation({ status: 'complete', failedGroups, blockedEvaluation }));
    const error = (await failureOf(monitor.wait('e1'))) as ServiceError;
    expect(error).to.be.instanceOf(ServiceError).and.to.include({ code: 'PLACEMENT_FAILED' });
    expect(error.message).to.equal(
      'job 7-a cannot be placed: group default-group: 1 of 3 nodes has no cpu left, ' +
        '2 of 3 nodes have no memory left; evaluation e9 waits for room',
    );
    expect(error.details).to.deep.include({
      evaluationId: 'e1',
      jobId: '7-a',
      failedGroups,
      blockedEvaluation,
    });
  });

  for (const status of ['failed', 'canceled'] as const) {
    it(`rejects an evaluation that ended ${status}`, async () => {
      monitor.observe(evaluation({ status, statusDescription: 'maximum attempts reached (5)' }));
      const error = await failureOf(monitor.wait('e1'));
      expect(error).to.include({ code: 'PLACEMENT_FAILED' });
      expect((error as Error).message).to.contain('maximum attempts reached (5)');
    });
  }

  it('goes on asking after a failure that may pass, and tells it at the limit', async () => {
    answer = () => {
      throw new ServiceError('NOMAD_UNREACHABLE', 'down');
    };
    const failing = failureOf(monitor.wait('e1', { timeoutMs: 10_000 }));
    await clock.advance(9_999);
    expect(asked.length).to.be.above(3);
    await clock.advance(1);
    expect(await failing).to.include({ code: 'NOMAD_UNREACHABLE' });
  });

  it('gives up at once on a failure that does not pass', async () => {
    for (const code of ['NOMAD_REFUSED', 'STOPPED'] as const) {
      answer = () => {
        throw new ServiceError(code, 'no');
      };
      const failing = failureOf(monitor.wait('e1'));
      await clock.advance(1_000);
      expect(await failing).to.include({ code });
    }
  });

  it('takes an evaluation that Nomad does not know (yet) for one that goes on', async () => {
    answer = () => undefined;
    const failing = failureOf(monitor.wait('e1', { timeoutMs: 5_000 }));
    await clock.advance(5_000);
    expect(await failing).to.include({ code: 'NOMAD_OVERLOADED' });
  });

  it('ends with the reason of the caller', async () => {
    const controller = new AbortController();
    const failing = failureOf(monitor.wait('e1', { signal: controller.signal }));
    await clock.advance(100);
    const reason = new ServiceError('RUNNER_GONE', 'gone');
    controller.abort(reason);
    expect(await failing).to.equal(reason);
    expect(await failureOf(monitor.wait('e1', { signal: controller.signal }))).to.equal(reason);
  });
});

describe('describePlacementFailure', () => {
  const sentence = (failure: PlacementFailure): string =>
    describePlacementFailure(evaluation({ failedGroups: { g: failure } }));

  for (const [failure, expected] of [
    [placementFailure({ nodesEvaluated: 0 }), 'there is no node to look at'],
    [placementFailure({ nodesExhausted: 2 }), '2 of 3 nodes have no room left'],
    [placementFailure({ nodesFiltered: 1 }), '1 of 3 nodes has been ruled out'],
    [placementFailure(), 'none of 3 nodes can take it'],
    [
      placementFailure({ nodesFiltered: 3, filteredConstraints: { 'missing drivers': 3 } }),
      '3 of 3 nodes have been ruled out by "missing drivers"',
    ],
  ] as const) {
    it(`tells that ${expected}`, () => {
      expect(sentence(failure)).to.equal(`job 7-a cannot be placed: group g: ${expected}`);
    });
  }
});
