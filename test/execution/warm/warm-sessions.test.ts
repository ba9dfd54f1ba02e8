import { expect } from 'chai';
import { ServiceError } from '../../../lib/base/errors.js';
import type { Aftermath } from '../../../lib/execution/session.js';
import { TestRunner } from '../../support/claimed-runner.js';
import { settle } from '../../support/fake-clock.js';
import { hanging } from './fake-sessions.js';
import { NEVER, RUN, WarmFixture } from './warm-fixture.js';

describe('WarmSessions', () => {
  let fixture: WarmFixture;

  beforeEach(async () => {
    fixture = await WarmFixture.start();
  });

  afterEach(() => fixture.end());

  describe('a lease', () => {
    it('gets the session that waits, and who the user is was found out already', async () => {
      const book = fixture.bookOf(await fixture.ready());
      expect(book.user?.name).to.equal('user');
      const { session } = await fixture.lease(book);
      expect(session).to.equal(fixture.terminals.last);
      expect((await fixture.lease(book, 'files')).session).to.equal(fixture.files.last);
      expect(fixture.cold).to.equal(0);
    });

    it('takes the cold path while the session is in use, is being opened or is of the other kind', async () => {
      const book = fixture.bookOf(await fixture.ready());
      await fixture.lease(book);
      await fixture.lease(book);
      await fixture.lease(book, 'pipe');
      expect(fixture.cold).to.equal(2);
      fixture.terminals.plan = hanging;
      await fixture.lease(fixture.bookOf(await fixture.ready()));
      expect(fixture.cold).to.equal(3);
    });

    it('serves one command after the other over the same session', async () => {
      const book = fixture.bookOf(await fixture.ready());
      for (let turn = 0; turn < 3; turn += 1) {
        const leased = await fixture.lease(book);
        expect(leased.session).to.equal(fixture.terminals.last);
        await leased.release('ended', RUN);
      }
      expect([fixture.cold, fixture.terminals.sessions.length, fixture.warm.count]).to.deep.equal([0, 1, 2]);
    });

    it('waits a moment for a session that is being put in order', async () => {
      const book = fixture.bookOf(await fixture.ready());
      const leased = await fixture.lease(book);
      let say: (verdict: Aftermath) => void = () => undefined;
      fixture.terminals.last.aftermaths = [new Promise((resolve) => (say = resolve))];
      void leased.release('ended', RUN);
      const next = fixture.lease(book);
      await settle();
      say('clean');
      expect((await next).session).to.equal(fixture.terminals.last);
      expect(fixture.cold).to.equal(0);
    });

    it('does not wait for long', async () => {
      const book = fixture.bookOf(await fixture.ready());
      const leased = await fixture.lease(book);
      let say: (verdict: Aftermath) => void = () => undefined;
      fixture.terminals.last.aftermaths = [new Promise((resolve) => (say = resolve))];
      const released = leased.release('ended', RUN);
      const next = fixture.lease(book);
      await fixture.clock.advance(100);
      await next;
      expect(fixture.cold).to.equal(1);
      say('spent');
      await released;
    });

    it('never gets a session again that was cut off, or is spent: another one is opened', async () => {
      const book = fixture.bookOf(await fixture.ready());
      await (await fixture.lease(book)).release('cut', RUN);
      await settle();
      expect(fixture.terminals.sessions.map(({ closed }) => closed)).to.deep.equal([1, 0]);
      const second = await fixture.lease(book);
      expect(second.session).to.equal(fixture.terminals.last);
      fixture.terminals.last.aftermaths = ['spent'];
      await second.release('ended', RUN);
      await settle();
      expect(fixture.terminals.sessions.map(({ closed }) => closed)).to.deep.equal([1, 1, 0]);
      expect(fixture.warm.count).to.equal(2);
    });

    it('gets a session again whose leftovers died when they were hung up on', async () => {
      const book = fixture.bookOf(await fixture.ready());
      const leased = await fixture.lease(book);
      fixture.terminals.last.aftermaths = ['suspect', 'clean'];
      book.hangUp = () => Promise.resolve(true);
      await leased.release('ended', RUN);
      expect((await fixture.lease(book)).session).to.equal(leased.session);
    });

    it('gets another one where something lives on that may write into it', async () => {
      const book = fixture.bookOf(await fixture.ready());
      const leased = await fixture.lease(book);
      fixture.terminals.last.aftermaths = ['suspect', 'clean'];
      book.hangUp = () => Promise.resolve(false);
      await leased.release('ended', RUN);
      await settle();
      expect((await fixture.lease(book)).session).to.not.equal(leased.session);
      expect(fixture.terminals.sessions[0]?.closed).to.equal(1);
    });

    it('hears of a runner that was in use before the service started, and opens its sessions then', async () => {
      const runner = new TestRunner();
      const book = fixture.bookOf(runner);
      await fixture.lease(book);
      await settle();
      expect([fixture.cold, fixture.warm.idle]).to.deep.equal([1, 2]);
      expect((await fixture.lease(book)).session).to.equal(fixture.terminals.last);
      // What we do there by ourselves says nothing of what a client did.
      expect(book.untouched).to.equal(true);
      runner.leave('returned');
    });
  });

  describe('the end of a life', () => {
    it('drops the sessions of a task that restarted, and opens new ones in its next life', async () => {
      const runner = await fixture.ready();
      runner.end();
      expect([
        fixture.terminals.last.destroyed,
        fixture.files.last.destroyed,
        fixture.warm.count,
      ]).to.deep.equal([1, 1, 0]);
      const { idle } = runner;
      fixture.warm.ready({ ...idle, taskSignal: new AbortController().signal });
      await settle();
      expect([fixture.terminals.sessions.length, fixture.warm.idle]).to.deep.equal([2, 2]);
      expect(fixture.terminals.last.options.sweeping).to.not.equal(undefined);
    });

    it('never takes a session back that belongs to an earlier life', async () => {
      const runner = await fixture.ready();
      const book = fixture.bookOf(runner);
      const leased = await fixture.lease(book);
      runner.end();
      fixture.warm.ready({ ...runner.idle, taskSignal: new AbortController().signal });
      await settle();
      await leased.release('ended', RUN);
      expect((await fixture.lease(book)).session).to.not.equal(leased.session);
      expect(fixture.terminals.sessions[0]?.destroyed).to.equal(1);
    });

    it('keeps nothing of a session that opens after the life is over', async () => {
      let finish: () => void = () => undefined;
      fixture.terminals.plan = (session) => new Promise((resolve) => (finish = () => resolve(session)));
      const runner = await fixture.ready();
      runner.end();
      finish();
      await settle();
      expect([
        fixture.terminals.last.closed + fixture.terminals.last.destroyed,
        fixture.warm.count,
      ]).to.deep.equal([1, 0]);
      await fixture.clock.advance(60_000);
      expect(fixture.terminals.sessions.length).to.equal(1);
    });

    it('opens another session where an exec of one that waits ends', async () => {
      await fixture.ready();
      fixture.terminals.last.end();
      await fixture.clock.advance(500);
      expect([fixture.terminals.sessions.length, fixture.warm.idle, fixture.warm.count]).to.deep.equal([
        2, 2, 2,
      ]);
    });
  });

  describe('scripts of ours', () => {
    const script = { text: 'echo 7', parse: () => 7, signal: NEVER };

    it('run in the session for files while nobody has it, and give it back', async () => {
      const runner = await fixture.ready();
      expect(await fixture.warm.runScript(runner, script)).to.equal(7);
      await settle();
      expect(fixture.files.last.requests.at(-1)?.user.kind).to.equal('privileged');
      await fixture.lease(fixture.bookOf(runner), 'files');
      expect(fixture.cold).to.equal(0);
      expect(fixture.warm.runScript(runner, script)).to.equal(undefined);
    });

    it('cost the session where they do not come to their end', async () => {
      const runner = await fixture.ready();
      fixture.files.last.ends = [
        { kind: 'lost', exec: 'command', end: { kind: 'closed', code: 1006, reason: '' } },
      ];
      const error = await fixture.warm.runScript(runner, script)?.catch((failure: unknown) => failure);
      expect(error).to.be.instanceOf(ServiceError);
      await settle();
      expect(fixture.files.sessions.map(({ closed }) => closed)).to.deep.equal([1, 0]);
    });
  });

  describe('stop', () => {
    it('ends what waits in the runners, and opens nothing any more', async () => {
      const runner = await fixture.ready();
      const book = fixture.bookOf(runner);
      const leased = await fixture.lease(book);
      await fixture.warm.stop();
      expect([fixture.terminals.last.closed, fixture.files.last.closed, fixture.warm.count]).to.deep.equal([
        0, 1, 1,
      ]);
      await leased.release('ended', RUN);
      expect([fixture.terminals.last.closed, fixture.warm.count]).to.deep.equal([1, 0]);
      await fixture.ready();
      await fixture.lease(book);
      expect([fixture.terminals.sessions.length, fixture.cold]).to.deep.equal([1, 1]);
    });

    it('gives up what is being opened', async () => {
      fixture.terminals.plan = hanging;
      await fixture.ready();
      await fixture.warm.stop();
      expect(fixture.warm.count).to.equal(0);
    });
  });
});
