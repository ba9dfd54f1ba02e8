import { existsSync } from 'node:fs';
import { expect } from 'chai';
import type { Environment } from '../../lib/environments/environment.js';
import type { Executions } from '../../lib/execution/executions.js';
import { TestRunner } from '../support/claimed-runner.js';
import { begin, execute, executionRequest, startExecutions } from '../support/executions.js';
import { LocalExecs } from '../support/local-exec.js';
import { namespaces, needs, program } from '../support/needs.js';

/** Execs in an image that a script makes out of this machine, by mounts that nobody else sees. */
function imageExecs(mounts: string, sh = 'sh'): LocalExecs {
  return new LocalExecs({ shell: ['unshare', '--mount', 'sh', '-c', `${mounts}\nexec ${sh} "$@"`, 'sh'] });
}

function without(...tools: string[]): string {
  const files = tools.flatMap((tool) =>
    ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].map((folder) => `${folder}/${tool}`),
  );
  return files
    .filter((file) => existsSync(file))
    .map((file) => `mount --bind /dev/null ${file}`)
    .join('\n');
}

describe('commands in images that lack something', function () {
  // dash loses a SIGINT that arrives in the very moment in which it forks; nothing here can tell when that is.
  this.retries(2);
  let executions: Executions;

  before(function () {
    // Processes with mounts of their own.
    needs(this, ...namespaces(['--mount'], ['mount', '--bind', '/dev/null', '/etc/hostname']));
  });

  async function start(nomad: LocalExecs, unfit: string[] = []): Promise<Executions> {
    executions = await startExecutions({
      nomad,
      onFitness: (_environment, reason) => void (reason && unfit.push(reason)),
    });
    return executions;
  }

  afterEach(() => executions.stop());

  const images: readonly [name: string, mounts: string, sh: string][] = [
    ['setpriv', '', 'sh'],
    ['runuser', without('setpriv'), 'sh'],
    ['su', without('setpriv', 'runuser'), 'sh'],
    ['su of BusyBox', without('setpriv', 'runuser', 'su'), 'busybox sh'],
  ];
  for (const [name, mounts, sh] of images) {
    for (const interactive of [true, false]) {
      it(`become the user by ${name} ${interactive ? 'with' : 'without'} a terminal [A4-87]`, async function () {
        needs(this, program(sh.replace(/ .*/, '')));
        await start(imageExecs(mounts, sh));
        const runner = new TestRunner();
        const run = (command: string): ReturnType<typeof execute> =>
          execute(
            executions,
            runner,
            executionRequest(command, { interactive, environment: { A: "x'\n-c" } }),
          );
        const first = await run('printf "%s|" "$(id -un)" "$HOME" "$A"; echo e >&2; exit 7');
        expect(first.stdout.replace('\r', '')).to.equal("nobody|/nonexistent|x'\n-c|");
        expect([first.stderr, first.exit]).to.deep.equal(['e\n', { kind: 'exited', exitCode: 7 }]);
        const second = await run('kill -9 $$');
        expect([second.stderr, second.exit]).to.deep.equal(['', { kind: 'exited', exitCode: 137 }]);
        if (!interactive) return;
        const third = begin(executions, runner, executionRequest('echo on; sleep 60'));
        await third.sink.until(({ stdout }) => stdout !== '');
        await third.run.write(Buffer.from('\x03'));
        expect(await third.run.exit).to.deep.equal({ kind: 'exited', exitCode: 130 });
      });
    }
  }

  it('are refused, and the environment reported, where nothing drops privileges', async () => {
    const unfit: string[] = [];
    await start(imageExecs(without('setpriv', 'runuser', 'su')), unfit);
    for (const interactive of [true, false]) {
      const { exit, stdout } = await execute(
        executions,
        new TestRunner(),
        executionRequest('id', { interactive }),
      );
      expect([exit, stdout]).to.deep.equal([{ kind: 'failed', message: unfit.at(-1) }, '']);
    }
    expect(unfit).to.have.length(2);
    const { stdout } = await execute(
      executions,
      new TestRunner(),
      executionRequest('id -u', { privileged: true }),
    );
    expect(stdout).to.equal('0\r\n');
  });

  it('run as the user of the environment, by name or by number, and never as root', async () => {
    await start(imageExecs(''));
    const run = (user: string): ReturnType<typeof execute> =>
      execute(
        executions,
        new TestRunner({ user } satisfies Partial<Environment>),
        executionRequest('id -u; id -G'),
      );
    expect((await run('nobody')).stdout).to.equal('65534\r\n65534\r\n');
    expect((await run('54321')).stdout).to.equal('54321\r\n54321\r\n');
    expect((await run('nosuchuser')).exit).to.deep.include({ kind: 'failed' });
    for (const root of ['root', '0']) {
      expect(await run(root)).to.deep.include({
        exit: { kind: 'failed', message: 'the user for unprivileged commands is root' },
        stdout: '',
      });
    }
  });

  for (const [name, mounts] of [
    ['read-only', 'mount -t tmpfs -o ro none /tmp'],
    [
      'full',
      'mount -t tmpfs -o size=8k,nr_inodes=100 none /tmp; head -c 8192 /dev/zero >/tmp/fill 2>/dev/null',
    ],
    ['without room for a folder', 'mount -t tmpfs -o nr_inodes=1 none /tmp'],
  ] as const) {
    it(`end with a reason where /tmp is ${name} [A2-58]`, async () => {
      await start(imageExecs(mounts));
      const expected = {
        kind: 'failed',
        message: 'the runner has no room for the command: its /tmp is full, read-only or missing',
      };
      const long = `: ${'x'.repeat(200_000)}`;
      expect((await execute(executions, new TestRunner(), executionRequest('true'))).exit).to.deep.equal(
        expected,
      );
      for (const [command, exit] of [
        ['exit 4', { kind: 'exited', exitCode: 4 }],
        [long, expected],
      ] as const) {
        const request = executionRequest(command, { interactive: false });
        expect((await execute(executions, new TestRunner(), request)).exit).to.deep.equal(exit);
      }
    });
  }
});
