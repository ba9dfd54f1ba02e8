import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { systemClock } from '../../lib/base/clock.js';
import { newExecutionId, systemRandomness } from '../../lib/base/ids.js';
import { newToken } from '../../lib/execution/command.js';
import type { Aftermath, CommandEnd, CommandSession } from '../../lib/execution/session.js';
import { openTerminalSession } from '../../lib/execution/terminal-session.js';
import type { RunnerUser } from '../../lib/shell/frames.js';
import type { CommandRequest } from '../../lib/shell/request.js';
import { TestRunner } from '../support/claimed-runner.js';
import { testFolders } from '../support/executions.js';
import { LocalExecs } from '../support/local-exec.js';
import { eachShell } from '../support/shells.js';
import { eventually } from '../support/waiting.js';

interface Answer {
  readonly stdout: string;
  readonly stderr: string;
  readonly end: CommandEnd;
  readonly aftermath: Aftermath;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // ESRCH
  }
}

/** Everything that a loop prints before a command in its own name or by the waiting process has to look the same. */
describe('a session with a terminal that is armed', () => {
  eachShell((shell) => {
    describe(`sh being ${shell[0]}`, () => {
      let session: CommandSession;
      let user: RunnerUser;

      beforeEach(() => open());

      async function open(): Promise<void> {
        session = await openTerminalSession(
          { nomad: new LocalExecs({ shell, env: { FROM_IMAGE: 'yes' } }), clock: systemClock },
          {
            runner: new TestRunner(),
            folder: testFolders().next(),
            keep: true,
            signal: new AbortController().signal,
          },
        );
        await run(':', { user: { kind: 'first-of', names: ['nobody'] } });
      }

      afterEach(() => session.close());

      function arm(splitStderr = true): void {
        session.arm?.(newToken(systemRandomness), { user, splitStderr });
      }

      async function run(command: string, overrides: Partial<CommandRequest> = {}): Promise<Answer> {
        const output = { stdout: '', stderr: '' };
        const end = await session.run(
          {
            token: newToken(systemRandomness),
            id: newExecutionId(systemRandomness),
            command,
            environment: {},
            exported: { CODEOCEAN: 'true' },
            workingDirectory: undefined,
            user: { kind: 'known', user },
            splitStderr: true,
            ...overrides,
          },
          {
            started: () => undefined,
            output: (stream, bytes) => (output[stream] += bytes.toString()),
            user: (found) => (user = found),
          },
        );
        return { ...output, end, aftermath: await session.settle() };
      }

      /** The process that waits, once it became the user. */
      async function waiting(): Promise<number> {
        const root = session.root?.pid ?? 0;
        const children = (): number[] =>
          readFileSync(`/proc/${root}/task/${root}/children`, 'utf8').trim().split(' ').map(Number);
        const uid = (pid: number): string =>
          /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
        await eventually('the waiting process', () => {
          const [pid = 0] = children();
          return pid > 0 && uid(pid) === user.uid;
        });
        return children()[0] ?? 0;
      }

      it('runs a plain command in the process that waited, and the next one again', async () => {
        for (let turn = 0; turn < 3; turn += 1) {
          arm();
          const pid = await waiting();
          const { stdout, stderr, end, aftermath } = await run(`echo $$ ${turn}; echo err >&2; exit ${turn}`);
          expect([stdout, stderr]).to.deep.equal([`${pid} ${turn}\r\n`, 'err\n']);
          expect([end, aftermath]).to.deep.equal([{ kind: 'exited', exitCode: turn }, 'clean']);
        }
      });

      it('gives a command the same variables, descriptors, folder and terminal as the loop does', async () => {
        const show =
          'env | grep -v SERAI_EXECUTION | sort; pwd; umask; ls -l /proc/self/fd | wc -l; stty -a; trap; ulimit -n; echo "${#SERAI_EXECUTION}"';
        const unarmed = await run(show);
        arm();
        const armed = await run(show);
        expect(armed.stdout).to.equal(unarmed.stdout);
        expect(armed.stderr).to.equal(unarmed.stderr);
        expect(armed.stdout).to.include('CODEOCEAN=true').and.to.include('FROM_IMAGE=yes');
        expect(armed.stdout).not.to.include('NOMAD_').and.not.to.include('serai');
      });

      it('runs what it does not expect all the same', async () => {
        const others: [Partial<CommandRequest>, string, string][] = [
          [{ user: { kind: 'privileged' } }, 'id -u', `${process.getuid?.()}\r\n`],
          [{ workingDirectory: '/usr' }, 'pwd', '/usr\r\n'],
          [{ environment: { LD_LIBRARY_PATH: '/x', lower: 'y' } }, 'echo $LD_LIBRARY_PATH$lower', '/xy\r\n'],
          [{ environment: { NAME: "it's" } }, 'echo "$NAME"', "it's\r\n"],
          [{ splitStderr: false }, 'echo e >&2', 'e\r\n'],
          [{}, `x='${'a'.repeat(5000)}'; echo \${#x}`, '5000\r\n'],
          [{}, 'echo ü', 'ü\r\n'],
        ];
        for (const [overrides, command, wanted] of others) {
          arm();
          const { stdout, end, aftermath } = await run(command, overrides);
          expect([stdout, end, aftermath]).to.deep.equal([wanted, { kind: 'exited', exitCode: 0 }, 'clean']);
        }
      });

      it('keeps stderr on the terminal where it was armed so', async () => {
        arm(false);
        const { stdout, aftermath } = await run('echo e >&2', { splitStderr: false });
        expect([stdout, aftermath]).to.deep.equal(['e\r\n', 'clean']);
      });

      it('takes the request itself where the waiting process was killed', async () => {
        for (let turn = 0; turn < 5; turn += 1) {
          arm();
          const pid = await waiting();
          process.kill(pid, 'SIGKILL');
          await eventually('its end', () => !isThere(pid));
          const { stdout, end, aftermath } = await run(`echo ${turn}; exit 3`);
          expect([stdout, end]).to.deep.equal([`${turn}\r\n`, { kind: 'exited', exitCode: 3 }]);
          expect(aftermath).to.equal('clean');
        }
      });

      it('runs a request whole or not at all where the process is killed while it takes it', async () => {
        for (let turn = 0; turn < 10; turn += 1) {
          arm();
          const pid = await waiting();
          const running = run(`echo ${turn}`);
          if (isThere(pid)) process.kill(pid, 'SIGKILL');
          const { stdout, end } = await running;
          if (end.kind === 'exited') {
            // Killed before it began to take it, or as the command that it had become.
            expect([`${turn}\r\n 0`, `${turn}\r\n 137`, ' 137']).to.include(`${stdout} ${end.exitCode}`);
          } else {
            expect([stdout, end.kind]).to.deep.equal(['', 'lost']);
            await session.close();
            await open();
          }
        }
      });

      it('leaves nothing in the runner that waits when it is closed', async () => {
        arm();
        const pid = await waiting();
        await session.close();
        await eventually('the end of the waiting process', () => !isThere(pid));
      });
    });
  });
});
