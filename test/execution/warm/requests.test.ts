import { expect } from 'chai';
import type { Runner } from './place.js';
import { exit, PATHS, Place } from './place.js';

for (const path of PATHS) {
  describe(`Requests of all kinds to one runner, with warm sessions ${path}`, function () {
    this.timeout(180_000);
    let place: Place;
    let runner: Runner;
    let loop: string;

    beforeEach(async function () {
      place ??= await Place.open(this, { path });
      runner ??= await place.claim();
      loop = await runner.loop();
    });
    afterEach(() => runner?.expectNext(loop, 'reused'));
    after(() => place?.[Symbol.asyncDispose]());

    it('give each its streams and its code', async () => {
      for (const code of [0, 1, 126, 137, 255]) {
        const { stdout, stderr, end } = await runner.run(`echo o; echo e >&2; exit ${code}`);
        expect([stdout, stderr, end]).to.deep.equal(['o\r\n', 'e\n', exit(code)]);
      }
    });

    it('run as the user, as root and as the user again', async () => {
      const who = 'id -un; id -Gn; echo $HOME $USER';
      const user = await runner.run(who);
      expect(user.stdout).to.equal('user\r\nuser\r\n/home/user user\r\n');
      expect((await runner.run(who, { privilegedExecution: true })).stdout).to.match(/^root\r\n/);
      expect((await runner.run(who)).stdout).to.equal(user.stdout);
    });

    it('leave variables, functions, options and the folder to themselves', async () => {
      const show = 'set -f; echo $- $A $(type -t f) $PWD $OLDPWD; umask; ulimit -n; trap; echo *';
      const untouched = (await runner.run(show)).stdout;
      const change = 'export A=b; f() { :; }; cd /; umask 077; ulimit -n 20; trap "" INT; set -x; exit 0';
      await runner.run(change, { environment: { A: 'c' }, workingDirectory: '/tmp' });
      expect((await runner.run(show)).stdout).to.equal(untouched);
    });

    it('run as written', async () => {
      const command = "cat <<'X'\n\ta\\tb `c` $d 'q'\nX";
      expect((await runner.run(command)).stdout).to.equal("\ta\\tb `c` $d 'q'\r\n");
    });

    for (const size of [1900, 2100, 99_000, 100_100, 300_000, 1_000_000]) {
      it(`run a command of ${size} bytes`, async () => {
        const { stdout, stderr, end } = await runner.run(
          `x='${'é'.repeat(size / 2)}'; printf %s "$x" | wc -c; exit 3`,
        );
        expect([stdout, stderr, end]).to.deep.equal([`${size}\r\n`, '', exit(3)]);
      });
    }

    it('begin in the folder that they name', async () => {
      expect((await runner.run('pwd', { workingDirectory: '/usr/lib' })).stdout).to.equal('/usr/lib\r\n');
      expect((await runner.run('pwd')).stdout).to.equal('/workspace\r\n');
    });

    it('have variables that act on nothing of ours', async () => {
      const trap =
        'cat >/tmp/evil.sh <<X\n/usr/bin/id -u >>/tmp/ran\nX\nmkdir -p /tmp/evil; : >/tmp/ran; chmod 666 /tmp/ran';
      await runner.run(trap);
      for (const tool of ['id', 'env', 'setpriv', 'head', 'stty', 'cat', 'readlink']) {
        await runner.run(
          `printf '#!/bin/sh\\n/usr/bin/id -u >>/tmp/ran\\n' >/tmp/evil/${tool}; chmod 755 /tmp/evil/${tool}`,
        );
      }
      const environment = {
        PATH: '/tmp/evil:/usr/bin:/bin',
        BASH_ENV: '/tmp/evil.sh',
        ENV: '/tmp/evil.sh',
        IFS: '1',
        HOME: '/tmp/evil',
        serai_d: '/tmp',
        serai_tool: 'none',
        TERM: '/tmp/evil',
      };
      const { stdout, end } = await runner.run('echo "$serai_d $HOME"; exit 3', { environment });
      expect([stdout, end]).to.deep.equal(['/tmp /tmp/evil\r\n', exit(3)]);
      expect(await runner.look('sort -u /tmp/ran')).to.equal('1001\n');
      // The loader tells of what it cannot load once for each program: the shell of the command alone.
      const { stderr } = await runner.run('exit 3', { environment: { LD_PRELOAD: '/tmp/evil.so' } });
      expect(stderr.match(/evil\.so/g)).to.have.length(1);
    });

    it('deliver 1 MB on both streams at once', async () => {
      const { stdout, stderr } = await runner.run(
        'head -c 1000000 /dev/zero | tr "\\0" o & head -c 1000000 /dev/zero | tr "\\0" e >&2; wait',
      );
      expect(stdout === 'o'.repeat(1_000_000) && stderr === 'e'.repeat(1_000_000)).to.equal(true);
    });

    it('deliver what has no newline at its end', async () => {
      for (let i = 0; i < 60; i += 1) {
        const { stdout, stderr, end } = await runner.run(`printf a${i}; printf b${i} >&2`);
        expect([stdout, stderr, end]).to.deep.equal([`a${i}`, `b${i}`, exit(0)]);
      }
    });
  });

  describe(`Requests that are refused, with warm sessions ${path}`, function () {
    this.timeout(60_000);

    it('run nothing, and harm no later one', async function () {
      await using place = await Place.open(this, { path });
      const runner = await place.claim();
      const refused = await runner.run('pwd', { workingDirectory: '/none' });
      expect([refused.stdout, refused.stderr, refused.end?.type]).to.deep.equal(['', '', 'error']);
      await runner.expectOrder();
    });
  });

  describe(`Requests where stderr is not kept apart, with warm sessions ${path}`, function () {
    this.timeout(60_000);

    it('give both streams as one, in one session', async function () {
      await using place = await Place.open(this, {
        path,
        settings: { SERAI_EXECUTION_INTERACTIVE_STDERR: 'false' },
      });
      const runner = await place.claim();
      const loops: string[] = [];
      for (let i = 0; i < 5; i += 1) {
        const { stdout, stderr, end } = await runner.run(`echo $PPID; echo e${i} >&2; printf x; exit ${i}`);
        const [loop, ...rest] = stdout.split('\r\n');
        expect([rest, stderr, end]).to.deep.equal([[`e${i}`, 'x'], '', exit(i)]);
        loops.push(loop ?? '');
      }
      expect(new Set(loops).size).to.equal(path === 'on' ? 1 : 5);
    });
  });
}
