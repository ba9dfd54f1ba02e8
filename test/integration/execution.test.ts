import { readdirSync, rmSync } from 'node:fs';
import { expect } from 'chai';
import { describeCommands } from '../execution/support/command-cases.js';
import type { AgentPlace } from '../support/agent-place.js';
import { startAgentPlace } from '../support/agent-place.js';
import type { TestRunner } from '../support/claimed-runner.js';
import { begin, execute, executionRequest } from '../support/executions.js';
import { eventually } from '../support/waiting.js';

/** Folders of sessions on this machine; tasks of the process driver have no /tmp of their own. */
function sessionFolders(): string[] {
  return readdirSync('/tmp').filter((name) => name.startsWith('.serai-'));
}

const DRIVERS = ['process'] as const;

for (const driver of DRIVERS) {
  describe(`Executions on the embedded agent with the ${driver} driver`, () => {
    let place: AgentPlace;
    let runner: TestRunner;
    let folder: string;

    before(async () => {
      place = await startAgentPlace({ driver, execution: { maxPerRunner: 50 } });
      runner = await place.claim();
      folder = (await execute(place.executions, runner, executionRequest('pwd'))).stdout.trim();
    });

    after(async () => {
      await place[Symbol.asyncDispose]();
      expect(runner.abandoned).to.deep.equal([]);
      expect(sessionFolders()).to.deep.equal([]);
    });

    describeCommands(() => ({
      executions: place.executions,
      runner,
      folder,
      hasPipes: driver !== 'process',
    }));

    it('leaves nothing in the runner after many commands [A2-58]', async () => {
      const look = 'ls -A /tmp | grep -F .serai; ps -e -o args= | grep -c "serai-[0-9a-f-]* *$"';
      for (let i = 0; i < 30; i += 1) {
        const { exit } = await execute(place.executions, runner, executionRequest(`exit ${i}`));
        expect(exit).to.deep.equal({ kind: 'exited', exitCode: i });
      }
      await eventually('the end of the sessions', () => place.executions.active === 0);
      const request = executionRequest(look, { interactive: false, privileged: true });
      expect((await execute(place.executions, runner, request)).stdout).to.equal('0\n');
    });

    it('loses no output of a hundred short commands [A2-57]', async () => {
      for (let i = 0; i < 100; i += 1) {
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

    it('survives clients that come and go at once [A2-50] [A2-51]', async () => {
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
      const { stdout, exit } = await execute(place.executions, runner, executionRequest('echo normal'));
      expect([stdout, exit]).to.deep.equal(['normal\r\n', { kind: 'exited', exitCode: 0 }]);
    });
  });

  describe(`A lost runner on the embedded agent with the ${driver} driver`, () => {
    it('tells that the runner is lost where its task is stopped under a command [A2-65]', async () => {
      await using place = await startAgentPlace({ driver });
      const before = new Set(sessionFolders());
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
      for (const name of sessionFolders().filter((folder) => !before.has(folder))) {
        rmSync(`/tmp/${name}`, { recursive: true });
      }
    });
  });
}
