import { existsSync } from 'node:fs';
import { expect } from 'chai';
import type { Executions } from '../../lib/execution/executions.js';
import { TestRunner } from '../support/claimed-runner.js';
import { execute, executionRequest, startExecutions } from '../support/executions.js';
import { LocalExecs } from '../support/local-exec.js';
import { eachShell } from '../support/shells.js';
import { describeCommands } from './support/command-cases.js';
import { describeSignals } from './support/signal-cases.js';

/** The protocol against real shells: execs are processes of this machine. */
describe('commands in a real shell', () => {
  eachShell((shell) => {
    describe(`sh being ${shell[0]}`, () => {
      const nomad = new LocalExecs({ shell, env: { FROM_IMAGE: 'yes' } });
      let executions: Executions;
      let runner: TestRunner;

      before(async () => {
        runner = new TestRunner({ environment: { FROM_ENVIRONMENT: 'yes' } });
        executions = await startExecutions({ nomad, execution: { maxPerRunner: 50 } });
      });

      after(async () => {
        await executions.stop();
        expect(runner.abandoned).to.deep.equal([]);
        const folders = nomad.options.filter(({ tty }) => tty).map(({ command }) => command.at(-1) ?? '');
        expect(folders.length).to.be.greaterThan(0);
        expect(folders.filter((folder) => existsSync(folder))).to.deep.equal([]);
      });

      describeCommands(() => ({
        executions,
        runner,
        folder: process.cwd(),
        user: 'nobody 65534 /nonexistent',
        hasPipes: nomad.hasPipes,
      }));

      describeSignals(() => ({ executions, runner }));

      it('puts stderr on the terminal where that is configured, still asking nothing of it', async () => {
        const plain = await startExecutions({ nomad, execution: { interactiveStderr: false } });
        const { stdout, stderr, exit } = await execute(
          plain,
          runner,
          executionRequest('echo out; echo err >&2; read -t 0.1 x; echo "[$x]"; exit 2'),
        );
        expect([stdout, stderr]).to.deep.equal(['out\r\nerr\r\n[]\r\n', '']);
        expect(exit).to.deep.equal({ kind: 'exited', exitCode: 2 });
        await plain.stop();
      });
    });
  });
});
