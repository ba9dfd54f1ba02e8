import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ProgramSignal } from '../../../lib/base/program-signals.js';
import type { Begun } from '../../support/executions.js';
import { begin, executionRequest } from '../../support/executions.js';
import { eventually } from '../../support/waiting.js';
import type { Place } from './command-cases.js';

/** States of the living processes that carry the id of an execution. */
function statesOf(id: string): string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      if (!/^\d+$/.test(name) || !readFileSync(`/proc/${name}/environ`, 'latin1').includes(id)) return [];
      return [/\) (\S)/.exec(readFileSync(`/proc/${name}/stat`, 'latin1'))?.[1] ?? ''];
    } catch {
      return []; // ended meanwhile, or a zombie
    }
  });
}

/** What signals have to do, wherever commands run. */
export function describeSignals(place: () => Pick<Place, 'executions' | 'runner'>): void {
  for (const interactive of [true, false]) {
    describe(`signals ${interactive ? 'with' : 'without'} a terminal`, () => {
      /** Begins a command and resolves once it has printed `on`. */
      async function start(command: string): Promise<Begun> {
        const begun = begin(
          place().executions,
          place().runner,
          executionRequest(command, { interactive, timeLimitSeconds: 15 }),
        );
        await begun.sink.until(({ stdout }) => stdout.includes('on'));
        return begun;
      }

      const ends: readonly (readonly [name: ProgramSignal, exitCode: number])[] = [
        ['SIGINT', 130],
        ['SIGTERM', 143],
        ['SIGHUP', 129],
        ['SIGUSR1', 138],
        ['SIGKILL', 137],
      ];
      for (const [name, exitCode] of ends) {
        it(`end a program by ${name}, and the shell around it goes on with nothing`, async () => {
          const { run, sink, id } = await start('echo on; sleep 60; echo after');
          await run.signal(name);
          expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode });
          expect(sink.stdout.trim()).to.equal('on');
          expect(sink.stderr).to.equal('');
          await eventually('the end of its processes', () => statesOf(id).length === 0);
        });
      }

      it('reach a handler, once', async () => {
        const { run, sink } = await start(
          `trap 'echo got; n=$((n + 1))' USR2; n=0; echo on; while [ $n -lt 2 ]; do sleep 0.05; done; exit 3`,
        );
        await run.signal('SIGUSR2');
        await sink.until(({ stdout }) => stdout.includes('got'));
        await run.signal('SIGUSR2');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 3 });
        expect(sink.stdout.split(/\r?\n/)).to.deep.equal(['on', 'got', 'got', '']);
      });

      it('leave alone what a handler starts', async () => {
        const { run, sink } = await start(
          `trap 'sleep 0.2; echo cleared; exit 4' TERM; echo on; while :; do sleep 0.05; done`,
        );
        await run.signal('SIGTERM');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 4 });
        expect(sink.stdout).to.include('cleared');
      });

      it('reach a program that carries no variable any more', async () => {
        const { run } = await start(`exec env -i sh -c 'echo on; exec sleep 60'`);
        await run.signal('SIGTERM');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 143 });
      });

      it('end all by SIGKILL, whatever it ignores and wherever it hides', async () => {
        const { run, id } = await start(
          `trap '' INT TERM HUP QUIT; setsid sleep 60 & (sleep 60 &) ; echo on; while :; do sleep 60; done`,
        );
        await run.signal('SIGKILL');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 137 });
        expect(statesOf(id)).to.deep.equal([]);
      });

      it('stop a program, and let it go on', async () => {
        const { run, id } = await start('echo on; sleep 60 & while [ ! -e /nowhere ]; do sleep 0.05; done');
        await run.signal('SIGSTOP');
        expect(statesOf(id).length).to.be.greaterThan(1);
        await eventually('all to stand', () => statesOf(id).every((state) => state === 'T'));
        await run.signal('SIGCONT');
        await eventually('none to stand', () => !statesOf(id).includes('T'));
        run.hangUp();
        await run.exit;
        await eventually('the end of its processes', () => statesOf(id).length === 0);
      });

      it('reach one execution and no other of its runner', async () => {
        const [first, second] = await Promise.all([
          start('echo on; sleep 60'),
          start('echo on; read x; exit 6'),
        ]);
        await first.run.signal('SIGTERM');
        expect(await first.run.exit).to.deep.equal({ kind: 'exited', exitCode: 143 });
        await second.run.write(Buffer.from('\n'));
        expect(await second.run.exit).to.deep.equal({ kind: 'exited', exitCode: 6 });
      });

      it('wait for the start, and are nothing after the end', async () => {
        const request = executionRequest('sleep 60', { interactive });
        const { run } = begin(place().executions, place().runner, request);
        await run.signal('SIGTERM');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 143 });
        await run.signal('SIGTERM');
      });

      if (!interactive) return;

      it('interrupt a program that reads every key itself', async () => {
        const { run } = await start('stty raw -echo; echo on; sleep 60');
        await run.write(Buffer.from('\x03'));
        await run.signal('SIGINT');
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 130 });
      });
    });
  }
}
