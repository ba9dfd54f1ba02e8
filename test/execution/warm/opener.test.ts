import { expect } from 'chai';
import { ServiceError } from '../../../lib/base/errors.js';
import { silentLogger } from '../../../lib/base/log.js';
import { RunnerBook } from '../../../lib/execution/runner-book.js';
import type { TestRunner } from '../../support/claimed-runner.js';
import { STEADY_PULSE } from '../../support/executions.js';
import { settle } from '../../support/fake-clock.js';
import type { FakeSession } from './fake-sessions.js';
import { NEVER, PooledRunner, WarmFixture } from './warm-fixture.js';

describe('WarmSessions that open', () => {
  let fixture: WarmFixture;

  beforeEach(async () => {
    fixture = await WarmFixture.start();
  });

  afterEach(() => fixture.end());

  describe('opening', () => {
    it('gives an idle runner one session of each kind, each tried by a command that does nothing', async () => {
      const runner = await fixture.ready();
      expect([
        fixture.terminals.sessions.length,
        fixture.files.sessions.length,
        fixture.warm.idle,
      ]).to.deep.equal([1, 1, 2]);
      const [request] = fixture.terminals.last.requests;
      expect([request?.command, request?.user.kind]).to.deep.equal([':', 'first-of']);
      expect(fixture.files.last.requests[0]?.user).to.include({ kind: 'known' });
      expect(fixture.terminals.last.options.keep).to.equal(true);
      expect([fixture.fitness, fixture.confirmed]).to.deep.equal([
        [undefined, undefined],
        [runner.id, runner.id],
      ]);
    });

    it('sweeps up behind services that died where it is the first to open a session', async () => {
      const runner = await fixture.ready();
      expect(fixture.terminals.last.options.sweeping?.family).to.match(/^\/tmp\/\.serai-test\w+-$/);
      expect(fixture.files.last.options.sweeping).to.equal(undefined);
      expect(fixture.bookOf(runner).isSwept).to.equal(true);
      expect(
        new RunnerBook({ ...fixture, log: silentLogger, pulse: STEADY_PULSE, stopSignal: NEVER }, runner)
          .isSwept,
      ).to.equal(false);
    });

    it('sweeps all the same where the first session could not be opened', async () => {
      const busy = (): Promise<never> =>
        Promise.reject(new ServiceError('NOMAD_OVERLOADED', 'too many connections'));
      fixture.terminals.plans.push(busy);
      fixture.files.plans.push(busy);
      const runner = await fixture.ready();
      expect(fixture.bookOf(runner).isSwept).to.equal(false);
      await fixture.clock.advance(1000);
      expect(fixture.terminals.last.options.sweeping).to.not.equal(undefined);
      expect(fixture.bookOf(runner).isSwept).to.equal(true);
    });

    it('opens so many at once, those of runners in use first, then those that came first', async () => {
      fixture = await WarmFixture.start({ warmParallel: 2 });
      const gates: (() => void)[] = [];
      fixture.terminals.plan = (session) => new Promise((resolve) => gates.push(() => resolve(session)));
      fixture.files.plan = fixture.terminals.plan;
      const runners = [new PooledRunner(), new PooledRunner(), new PooledRunner()];
      for (const runner of runners) fixture.warm.ready(runner.idle);
      await settle();
      expect(fixture.warm.count).to.equal(2);
      const opened = (): number[] =>
        [...fixture.terminals.sessions, ...fixture.files.sessions].map(({ options }) =>
          runners.findIndex(({ id }) => id === (options.runner as TestRunner).id),
        );
      expect(opened()).to.deep.equal([0, 1]);
      const [, , last] = runners;
      if (last) await fixture.lease(fixture.bookOf(last));
      expect(fixture.cold).to.equal(1);
      gates.shift()?.();
      await settle();
      expect(opened()).to.deep.equal([0, 1, 2]);
      while (gates.length > 0) {
        gates.shift()?.();
        await settle();
      }
      expect([fixture.warm.idle, opened().toSorted()]).to.deep.equal([6, [0, 0, 1, 1, 2, 2]]);
    });

    it('keeps no more open than it may, and gives the place of one that went to the runner that waits longest', async () => {
      fixture = await WarmFixture.start({ maxSessions: 3 });
      const [first, second, third] = [await fixture.ready(), await fixture.ready(), await fixture.ready()];
      expect([
        fixture.warm.count,
        fixture.terminals.sessions.length,
        fixture.files.sessions.length,
      ]).to.deep.equal([3, 2, 1]);
      first.end();
      await settle();
      expect([
        fixture.warm.count,
        fixture.terminals.sessions.length,
        fixture.files.sessions.length,
      ]).to.deep.equal([3, 3, 2]);
      for (const runner of [second, third]) runner.end();
    });

    it('opens none with a bound of none', async () => {
      fixture = await WarmFixture.start({ maxSessions: 0 });
      const book = fixture.bookOf(await fixture.ready());
      await fixture.lease(book);
      expect([fixture.warm.count, fixture.cold]).to.deep.equal([0, 1]);
    });

    it('tries again later, and ever later, where Nomad opens no exec', async () => {
      fixture.terminals.plan = () => Promise.reject(new ServiceError('NOMAD_OVERLOADED', 'too many'));
      await fixture.ready();
      expect([fixture.warm.count, fixture.terminals.sessions.length]).to.deep.equal([1, 1]);
      await fixture.clock.advance(500);
      expect(fixture.terminals.sessions.length).to.equal(2);
      await fixture.clock.advance(999);
      expect(fixture.terminals.sessions.length).to.equal(2);
      fixture.terminals.plan = (session) => session;
      await fixture.clock.advance(1);
      expect([fixture.warm.idle, fixture.terminals.sessions.length]).to.deep.equal([2, 3]);
      expect(fixture.replaced).to.deep.equal([]);
    });
  });

  describe('the check', () => {
    const wrongly = (session: FakeSession): FakeSession => {
      session.ends = [{ kind: 'exited', exitCode: 1 }];
      return session;
    };

    it('replaces a runner that answers it wrongly twice, with the reason', async () => {
      fixture.terminals.plan = wrongly;
      const runner = await fixture.ready();
      expect(fixture.replaced).to.deep.equal([]);
      await fixture.clock.advance(500);
      expect(fixture.replaced).to.have.length(1);
      expect(fixture.replaced[0]).to.match(new RegExp(`^${runner.id}: .*exit code 1$`));
      expect(fixture.terminals.sessions.map(({ closed }) => closed)).to.deep.equal([1, 1]);
      await fixture.clock.advance(60_000);
      expect(fixture.terminals.sessions.length).to.equal(2);
    });

    it('forgets a wrong answer after a right one', async () => {
      fixture.terminals.plans.push(wrongly);
      await fixture.ready();
      await fixture.clock.advance(500);
      fixture.terminals.plans.push(wrongly);
      fixture.terminals.last.end();
      await fixture.clock.advance(500);
      expect([fixture.replaced, fixture.warm.idle]).to.deep.equal([[], 1]);
      await fixture.clock.advance(2000);
      expect([fixture.replaced, fixture.warm.idle]).to.deep.equal([[], 2]);
    });

    it('replaces one runner of an environment at a time, until the next one was checked', async () => {
      fixture.terminals.plan = wrongly;
      await fixture.ready();
      await fixture.ready();
      await fixture.clock.advance(60_000);
      expect(fixture.replaced).to.have.length(1);
      fixture.terminals.plans.push((session) => session);
      await fixture.ready();
      await fixture.clock.advance(30_000);
      expect(fixture.replaced).to.have.length(2);
    });

    it('replaces no runner that somebody has claimed', async () => {
      fixture.terminals.plan = wrongly;
      const runner = await fixture.ready();
      await fixture.lease(fixture.bookOf(runner));
      await fixture.clock.advance(60_000);
      expect(fixture.replaced).to.deep.equal([]);
    });

    it('gives up on a runner that does not answer at all', async () => {
      fixture.terminals.plan = (session) => {
        session.run = () => new Promise(() => undefined);
        return session;
      };
      await fixture.ready();
      await fixture.clock.advance(15_000);
      await fixture.clock.advance(500 + 15_000);
      expect(fixture.replaced[0]).to.include('did not answer within 15 s');
    });

    it('takes a connection that broke, and a token that is not good enough, for no fault of the runner', async () => {
      for (const [code, reason] of [
        [1006, ''],
        [1011, 'Permission denied'],
      ] as const) {
        fixture.terminals.plan = (session) => {
          session.ends = [{ kind: 'lost', exec: 'command', end: { kind: 'closed', code, reason } }];
          return session;
        };
        await fixture.ready();
        await fixture.clock.advance(60_000);
      }
      expect(fixture.replaced).to.deep.equal([]);
    });

    it('reports an image that cannot drop privileges, and leaves its runners alone', async () => {
      fixture.terminals.plan = (session) => {
        session.ends = [{ kind: 'refused', refusal: 'no-drop' }];
        return session;
      };
      fixture.files.plan = fixture.terminals.plan;
      await fixture.ready();
      await fixture.clock.advance(60_000);
      expect(fixture.fitness[0]).to.include('cannot drop privileges');
      expect([fixture.replaced, fixture.terminals.sessions.length]).to.deep.equal([[], 1]);
    });

    it('leaves an image alone that can run a single command in a session, which is no fault', async () => {
      fixture.terminals.plan = (session) => {
        session.aftermaths = ['spent'];
        return session;
      };
      const runner = await fixture.ready();
      await fixture.clock.advance(60_000);
      expect([fixture.replaced, fixture.terminals.sessions.length, fixture.fitness]).to.deep.equal([
        [],
        2,
        [undefined, undefined, undefined],
      ]);
      await fixture.lease(fixture.bookOf(runner));
      expect(fixture.cold).to.equal(1);
    });
  });
});
