import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ExecutionRequest } from '../../../lib/execution/api.js';
import type { Executions } from '../../../lib/execution/executions.js';
import type { TestRunner } from '../../support/claimed-runner.js';
import type { Finished } from '../../support/executions.js';
import { begin, execute, executionRequest } from '../../support/executions.js';
import { needs, ROOT } from '../../support/needs.js';
import { eventually } from '../../support/waiting.js';

/** Where the cases are tried. */
export interface Place {
  readonly executions: Executions;
  readonly runner: TestRunner;
  /** The working directory of the image. */
  readonly folder: string;
  /** What an unprivileged command says of itself: name, number, home. */
  readonly user: string;
  /** Whether the pipes of an exec are pipes; Node makes them sockets, which cannot be opened by name. */
  readonly hasPipes: boolean;
}

/** Living processes that carry the id of an execution. */
function processesOf(id: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'latin1').includes(id);
    } catch {
      return false; // ended meanwhile, or a zombie
    }
  });
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return ''; // ended meanwhile
  }
}

/**
 * What every command has to do, wherever it runs. The environment of the runner sets FROM_ENVIRONMENT and the image
 * sets FROM_IMAGE, both to `yes`.
 */
export function describeCommands(place: () => Place): void {
  for (const interactive of [true, false]) {
    describe(interactive ? 'with a terminal' : 'without a terminal', () => {
      const newline = interactive ? '\r\n' : '\n';
      const run = (command: string, overrides: Partial<ExecutionRequest> = {}): Promise<Finished> =>
        execute(place().executions, place().runner, executionRequest(command, { interactive, ...overrides }));

      it('gives the exact exit code [A2-44]', async () => {
        for (const code of [0, 1, 3, 124, 126, 127, 128, 137, 255]) {
          expect((await run(`exit ${code}`)).exit, String(code)).to.deep.equal({
            kind: 'exited',
            exitCode: code,
          });
        }
        expect((await run('kill -9 $$')).exit).to.deep.equal({ kind: 'exited', exitCode: 137 });
        expect((await run('kill -TERM $$')).exit).to.deep.equal({ kind: 'exited', exitCode: 143 });
        expect((await run('exec 0<&- 1>&- 2>&-; exit 4')).exit).to.deep.equal({
          kind: 'exited',
          exitCode: 4,
        });
      });

      it('keeps the streams apart and says nothing of its own [A2-49]', async () => {
        const { stdout, stderr } = await run('echo out; echo err >&2; kill -9 $$');
        expect([stdout, stderr]).to.deep.equal([`out${newline}`, 'err\n']);
      });

      it('runs the text exactly as written [B10]', async () => {
        expect((await run("cat <<'X'\n\ta\\tb `c` $d 'q'\nX\n")).stdout).to.equal(
          `\ta\\tb \`c\` $d 'q'${newline}`,
        );
        expect((await run(`printf '%s|' 'a b' "c'd" \\$HOME`)).stdout).to.equal("a b|c'd|$HOME|");
        expect((await run('printf a\\\n')).stdout).to.equal('a');
      });

      it('passes commands of any length [B18]', async () => {
        for (const length of [50_000, 99_990, 120_000, 300_000]) {
          const { stdout, stderr, exit } = await run(`x='${'a'.repeat(length)}'; echo \${#x}; exit 0`);
          expect([stdout.trim(), stderr, exit]).to.deep.equal([
            String(length),
            '',
            { kind: 'exited', exitCode: 0 },
          ]);
        }
      });

      it('gives the variables exactly, and none of the platform [A4-86] [B9]', async () => {
        const value = `x y; id $(id) \`id\` "q" 's' \\ é😀\n`;
        const { stdout, id } = await run(
          'printf "%s" "$A|$B|$FROM_ENVIRONMENT|$FROM_IMAGE|$SERAI_EXECUTION"',
          {
            environment: { A: value, B: '' },
          },
        );
        expect(stdout.replaceAll('\r\n', '\n')).to.equal(`${value}||yes|yes|${id}`);
        const names = (await run('env')).stdout.split(/\r?\n/).map((line) => line.split('=')[0]);
        expect(names.filter((name) => /^NOMAD|^serai_|^OLDPWD/.test(name ?? ''))).to.deep.equal([]);
        expect(names).to.include('CODEOCEAN');
      });

      it('runs unprivileged unless it is asked not to [A4-87]', async function () {
        needs(this, ROOT);
        const who = 'echo "$USER $(id -u) $HOME"; [ "$USER" = "$(id -un)" ]';
        expect((await run(who)).stdout.trim()).to.equal(place().user);
        expect((await run(who, { privileged: true })).stdout.trim()).to.match(/(^| )0 \//);
      });

      it('lets the program open its own streams by name', async function () {
        needs(this, ROOT);
        if (!interactive && !place().hasPipes) return;
        const { stdout, stderr } = await run('echo a >/dev/stdout; echo b >/dev/stderr');
        expect(stdout).to.equal(`a${newline}`);
        expect(stderr).to.equal('b\n');
      });

      it('starts in the working directory that is asked for, or says that it cannot', async () => {
        expect((await run('pwd; echo "$OLDPWD"', { workingDirectory: '/usr' })).stdout).to.equal(
          `/usr${newline}${newline}`,
        );
        expect((await run('pwd')).stdout.trim()).to.equal(place().folder);
        const { exit } = await run('pwd', { workingDirectory: '/nowhere' });
        expect(exit).to.deep.equal({
          kind: 'failed',
          message: 'the working directory does not exist or is closed to the user',
        });
      });

      it('does not wait for a child in the background [B13]', async () => {
        const { exit, stdout } = await run(
          '(trap "" HUP; setsid sleep 2 & nohup sleep 2 >/dev/null & sleep 2) & echo done; exit 6',
        );
        expect(exit).to.deep.equal({ kind: 'exited', exitCode: 6 });
        expect(stdout).to.equal(`done${newline}`);
      });

      it('lets a child live on that asked for it, unheard, and hangs up on the rest of a terminal', async () => {
        const { exit, stdout, id } = await run(
          '(trap "" HUP; sleep 0.5; echo late; exec sleep 60) & (while :; do echo more; done) & sleep 0.1; echo end >&2; exit 8',
        );
        expect(exit).to.deep.equal({ kind: 'exited', exitCode: 8 });
        expect(stdout).to.not.include('late');
        const left = (): string[] => processesOf(id).filter((pid) => commandOf(pid).includes('more'));
        if (interactive) await eventually('the hang-up', () => left().length === 0);
        const survivors = processesOf(id);
        expect(survivors).to.not.deep.equal([]);
        for (const pid of survivors) process.kill(Number(pid), 'SIGKILL');
      });

      it('delivers large output whole, on both streams [A2-38]', async () => {
        const { stdout, stderr } = await run('seq 1 60000; seq 1 60000 >&2');
        const expected = Array.from({ length: 60_000 }, (_, i) => `${i + 1}\n`).join('');
        expect(stdout.replaceAll('\r\n', '\n') === expected).to.equal(true);
        expect(stderr === expected).to.equal(true);
      });

      it('loses no output that comes right before the end [A2-57]', async () => {
        for (let i = 0; i < 20; i += 1) {
          const { stdout, stderr } = await run(`printf a${i}; printf b${i} >&2`);
          expect([stdout, stderr]).to.deep.equal([`a${i}`, `b${i}`]);
        }
      });

      it('passes on what is typed, and its end [A2-64]', async () => {
        const { sink, run } = begin(
          place().executions,
          place().runner,
          executionRequest('tr a-z A-Z', { interactive }),
        );
        await run.write(Buffer.from('hello\n'));
        await sink.until(({ stdout }) => (interactive ? stdout.includes('hello') : true));
        run.closeStdin();
        expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 0 });
        expect(sink.stdout).to.include('HELLO');
      });

      it('has everything dead after the time limit [A2-47] [A2-48]', async () => {
        const { exit, stdout, id } = await run(
          `trap '' INT QUIT TERM HUP; setsid sleep 99 & (sleep 99 &) & echo a; while :; do sleep 99; done`,
          { timeLimitSeconds: 1 },
        );
        expect(exit).to.deep.equal({ kind: 'time-limit' });
        expect(stdout).to.equal(`a${newline}`);
        await eventually('the end of its processes', () => processesOf(id).length === 0, 2000);
      });

      it('has everything dead when the client left [A2-51]', async () => {
        const request = executionRequest('echo go; setsid sleep 99 & sleep 99', { interactive });
        const { id, sink, run: left } = begin(place().executions, place().runner, request);
        await sink.until(({ stdout }) => stdout !== '');
        left.hangUp();
        expect(await left.exit).to.deep.equal({ kind: 'hang-up' });
        await eventually('the end of its processes', () => processesOf(id).length === 0, 2000);
      });
    });
  }

  it('keeps all bytes without a terminal', async () => {
    const script = 'i=0; while [ $i -lt 128 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done';
    const { stdout } = await execute(
      place().executions,
      place().runner,
      executionRequest(script, { interactive: false }),
    );
    expect(stdout).to.equal(Buffer.from(Array.from({ length: 128 }, (_, i) => i)).toString());
  });

  it('interrupts the program, not itself, on Ctrl-C', async () => {
    const { sink, run } = begin(place().executions, place().runner, executionRequest('echo on; sleep 60'));
    await sink.until(({ stdout }) => stdout.includes('on'));
    await run.write(Buffer.from('\x03'));
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 130 });
  });

  it('takes nothing that is typed for a request', async () => {
    const { run } = begin(place().executions, place().runner, executionRequest('sleep 0.2; exit 3'));
    await run.write(Buffer.from(`1 10\nexit 9; x\n`));
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 3 });
  });

  it('has an end where a program changes the terminal or stops it', async () => {
    const raw = await execute(
      place().executions,
      place().runner,
      executionRequest('stty raw -echo olcuc; echo hi; exit 5'),
    );
    expect(raw.exit).to.deep.equal({ kind: 'exited', exitCode: 5 });
    const { sink, run } = begin(
      place().executions,
      place().runner,
      executionRequest('echo on; sleep 0.3; exit 9'),
    );
    await sink.until(({ stdout }) => stdout.includes('on'));
    await run.write(Buffer.from('\x13'));
    expect(await run.exit).to.deep.equal({ kind: 'exited', exitCode: 9 });
  });

  it('runs several commands of a runner at once', async () => {
    const runs = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((i) =>
        execute(
          place().executions,
          place().runner,
          executionRequest(`echo ${i}; exit ${i}`, { interactive: i % 2 === 0 }),
        ),
      ),
    );
    expect(
      runs.map(({ exit, stdout }) => [exit.kind === 'exited' && exit.exitCode, stdout.trim()]),
    ).to.deep.equal([1, 2, 3, 4, 5, 6].map((i) => [i, String(i)]));
  });
}
