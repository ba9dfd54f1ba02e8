import { rmSync } from 'node:fs';
import { expect } from 'chai';
import { describeCommands } from '../execution/support/command-cases.js';
import { describeSignals } from '../execution/support/signal-cases.js';
import type { AgentPlace } from '../support/agent-place.js';
import { startAgentPlace } from '../support/agent-place.js';
import type { TestRunner } from '../support/claimed-runner.js';
import { begin, execute, executionRequest } from '../support/executions.js';
import { skipWithoutDriver } from '../support/needs.js';
import { eventually } from '../support/waiting.js';

const DRIVERS = ['process', 'sandbox'] as const;
const USERS = { process: 'nobody 65534 /nonexistent', sandbox: 'user 1001 /home/user' };

for (const driver of DRIVERS) {
  const places: AgentPlace[] = [];

  async function stopAll(): Promise<void> {
    for (const place of places.splice(0)) await place[Symbol.asyncDispose]();
  }

  /** Starts the agent; a machine that cannot run the driver skips the tests. */
  async function start(context: Mocha.Context, options = {}): Promise<AgentPlace> {
    try {
      const place = await startAgentPlace({ driver, ...options });
      places.push(place);
      return place;
    } catch (error) {
      return skipWithoutDriver(context, error);
    }
  }

  describe(`Executions on the embedded agent with the ${driver} driver`, () => {
    let place: AgentPlace;
    let runner: TestRunner;
    let folder: string;

    before(async function () {
      place = await start(this, { execution: { maxPerRunner: 50 } });
      runner = await place.claim();
      folder = (await execute(place.executions, runner, executionRequest('pwd'))).stdout.trim();
    });

    after(async () => {
      await stopAll();
      expect(runner?.abandoned ?? []).to.deep.equal([]);
    });

    describeCommands(() => ({
      executions: place.executions,
      runner,
      folder,
      user: USERS[driver],
      hasPipes: false,
    }));

    describeSignals(() => ({ executions: place.executions, runner }));

    /** Sessions with a terminal of which a folder or a process is left. */
    async function leftovers(): Promise<string[]> {
      const look = executionRequest('ls -A /tmp; ps -e -o args=', { interactive: false, privileged: true });
      const { stdout } = await execute(place.executions, runner, look);
      expect(place.sessionFolders).to.not.deep.equal([]);
      return place.sessionFolders.filter((name) => stdout.includes(name));
    }

    it('leaves nothing in the runner after many commands [A2-58]', async () => {
      for (let i = 0; i < 30; i += 1) {
        const { exit } = await execute(place.executions, runner, executionRequest(`exit ${i}`));
        expect(exit).to.deep.equal({ kind: 'exited', exitCode: i });
      }
      await eventually('the end of the sessions', () => place.executions.active === 0);
      expect(await leftovers()).to.deep.equal([]);
    });

    it('loses no output of many short commands [A2-57]', async () => {
      for (let i = 0; i < 50; i += 1) {
        const { stdout, exit } = await execute(place.executions, runner, executionRequest(`echo ok${i}`));
        expect([stdout, exit.kind]).to.deep.equal([`ok${i}\r\n`, 'exited']);
      }
    });

    it('slows a program down whose client does not read, and loses nothing [A2-59]', async () => {
      for (const interactive of [true, false]) {
        const request = executionRequest('seq 1 400000; echo end >&2', { interactive });
        const { sink, run } = begin(place.executions, runner, request);
        sink.room = false;
        await sink.until(({ drainsAwaited }) => drainsAwaited > 0);
        let length = -1;
        await eventually('the flow to stop', async () => {
          const before = length;
          length = sink.stdout.length;
          await new Promise((resolve) => setTimeout(resolve, 100));
          return before === length;
        });
        expect(length).to.be.lessThan(2_000_000);
        sink.drain();
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
        const expected = Array.from({ length: 400_000 }, (_, i) => `${i + 1}\n`).join('');
        expect(sink.stdout.replaceAll('\r\n', '\n') === expected).to.equal(true);
        expect(sink.stderr).to.equal('end\n');
      }
    });

    it('survives clients that come and go at once [A2-43] [A2-50] [A2-51]', async () => {
      for (let i = 0; i < 20; i += 1) {
        const { run } = begin(
          place.executions,
          runner,
          executionRequest('seq 1 100000', { interactive: i % 2 === 0 }),
        );
        if (i % 3 > 0) await new Promise((resolve) => setTimeout(resolve, i));
        run.hangUp();
        expect(await run.exit).to.deep.equal({ kind: 'hang-up' });
      }
      await eventually('the end of all', () => place.executions.active === 0, 20_000);
      expect(await leftovers()).to.deep.equal([]);
      const { stdout, exit } = await execute(place.executions, runner, executionRequest('echo normal'));
      expect([stdout, exit]).to.deep.equal(['normal\r\n', { kind: 'exited', exitCode: 0 }]);
    });
  });

  if (driver === 'sandbox') {
    describe('Processes that belong to nobody in a sandbox', () => {
      let place: AgentPlace;
      const count = executionRequest('ps -e -o args= | grep -c "^sleep 9876"', {
        interactive: false,
        privileged: true,
      });

      before(async function () {
        place = await start(this);
      });
      after(stopAll);

      it('are dead after the time limit of the only execution [A2-48]', async () => {
        const runner = await place.claim();
        const hide = 'setsid env -i sleep 9876 & setsid -f env -i sh -c "sleep 9876; :"; sleep 99';
        const { exit } = await execute(
          place.executions,
          runner,
          executionRequest(hide, { timeLimitSeconds: 1 }),
        );
        expect(exit).to.deep.equal({ kind: 'time-limit' });
        // A command starts only when that is done.
        expect((await execute(place.executions, runner, count)).stdout).to.equal('0\n');
        expect(runner.abandoned).to.deep.equal([]);
      });

      it('are dead once the other executions have ended [A2-68]', async () => {
        const runner = await place.claim();
        const other = begin(place.executions, runner, executionRequest('echo on; read x; exit 3'));
        await other.sink.until(({ stdout }) => stdout !== '');
        const hide = 'setsid -f env -i sleep 9876; sleep 99';
        await execute(place.executions, runner, executionRequest(hide, { timeLimitSeconds: 1 }));
        await eventually('the first to be cleared', () => place.executions.active === 1);
        expect((await execute(place.executions, runner, count)).stdout).to.equal('1\n');
        await other.run.write(Buffer.from('\n'));
        expect(await other.run.exit).to.deep.equal({ kind: 'exited', exitCode: 3 });
        await eventually('the other to be cleared', () => place.executions.active === 0);
        expect((await execute(place.executions, runner, count)).stdout).to.equal('0\n');
        expect(runner.abandoned).to.deep.equal([]);
      });

      it('are not those that a command left on purpose', async () => {
        const runner = await place.claim();
        await execute(
          place.executions,
          runner,
          executionRequest('setsid -f sleep 9876; nohup sleep 9876 >/dev/null &'),
        );
        await execute(place.executions, runner, executionRequest('sleep 99', { timeLimitSeconds: 1 }));
        expect((await execute(place.executions, runner, count)).stdout).to.equal('2\n');
      });

      for (const bomb of ['while :; do sleep 9876 & done', 'f() { f | f & }; f; sleep 99']) {
        it(`of a fork bomb are dead, or the runner is given up: ${bomb} [A4-90]`, async () => {
          const runner = await place.claim();
          const { exit } = await execute(
            place.executions,
            runner,
            executionRequest(bomb, { timeLimitSeconds: 1 }),
          );
          expect(exit).to.deep.equal({ kind: 'time-limit' });
          await eventually('the end of the bomb', () => place.executions.active === 0);
          if (runner.abandoned.length > 0) return;
          expect((await execute(place.executions, runner, count)).stdout).to.equal('0\n');
        });
      }
    });
  }

  describe(`A lost runner on the embedded agent with the ${driver} driver`, () => {
    afterEach(stopAll);

    it('tells that the runner is lost where its task is stopped under a command [A2-65]', async function () {
      const place = await start(this);
      const other = await place.claim();
      const { sink, run } = begin(place.executions, other, executionRequest('echo on; sleep 60'));
      await sink.until(({ stdout }) => stdout !== '');
      other.news = 'gone';
      await place.client.jobs.purge('1-task-1');
      expect(await run.exit).to.deep.equal({
        kind: 'failed',
        message: 'the runner was lost while the command ran',
      });
      await eventually('the end of its sockets', () => place.executions.active === 0);
      const late = await execute(place.executions, other, executionRequest('true'));
      expect(late.exit).to.deep.include({ kind: 'failed' });
      // Without a /tmp of its own the task cannot take its folder along.
      for (const name of place.sessionFolders) rmSync(`/tmp/${name}`, { recursive: true, force: true });
    });
  });
}
