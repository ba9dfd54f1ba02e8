import { expect } from 'chai';
import type { Runner } from './place.js';
import { exit, PATHS, Place } from './place.js';

/** The folder of the session that runs the command, in D. */
const FOLDER = 'D=$(tr "\\0" "\\n" </proc/$PPID/cmdline | grep "^/tmp/.serai-" | tail -n 1); ';
const PRIVILEGED = { privilegedExecution: true };

for (const path of PATHS) {
  describe(`What a program does to the session that runs it, with warm sessions ${path}`, function () {
    this.timeout(180_000);
    let place: Place;
    let runner: Runner;

    before(async function () {
      place = await Place.open(this, { path });
      runner = await place.claim();
    });
    after(() => place?.[Symbol.asyncDispose]());

    const DESCRIPTORS: [command: string, code: number][] = [
      ['exec 0<&- 1>&- 2>&-; exit 4', 4],
      ['exec >/dev/null 2>&1 </dev/null; echo lost; exit 5', 5],
      ['exec 1>&2; exec 2>&-; exit 6', 6],
      ['for i in 3 4 5 6 7 8 9 10 11 12 63 255; do eval "exec $i>&-"; done; exit 7', 7],
      ['for i in 3 4 5 6 7 8 9; do echo X 1 0 >&$i; done 2>/dev/null; exit 8', 8],
      ['kill -HUP $$; sleep 600; exit 5', 129],
      ['kill -KILL $$', 137],
      ['(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; exit 9', 9],
      ["trap 'exit 11' HUP INT TERM; kill -INT 0; sleep 0.1", 11],
      ['kill -9 0', 137],
    ];
    for (const [command, code] of DESCRIPTORS) {
      it(`gives its code and goes on: ${command}`, async () => {
        const before = await runner.loop();
        // The last is told to the whole process group, which the command shares with the loop where its user may.
        expect((await runner.run(command)).end).to.deep.equal(exit(code));
        await runner.expectNext(before, 'reused');
      });
    }

    it('outlives everything of the user being killed', async () => {
      const before = await runner.loop();
      await runner.run('kill -9 -1');
      await runner.expectNext(before, 'reused');
    });

    const KILLS: Record<string, string> = {
      'the loop': 'kill -9 $PPID',
      'the loop, while it is stopped': 'kill -STOP $PPID; kill -9 $PPID',
      'the readers of the fifos': `${FOLDER} for p in $(ps -e -o pid=,args= | grep "$D/[ceq]" | awk '{print $1}'); do kill -9 $p; done`,
      'the control side': `${FOLDER} for p in $(ps -e -o pid=,args= | grep "$D" | awk '{print $1}'); do [ $p = $PPID ] || kill -9 $p; done`,
      'the folder': `${FOLDER} rm -rf "$D"`,
      'the fifos': `${FOLDER} rm "$D/c" "$D/e" "$D/q"; mkfifo "$D/e"`,
    };
    for (const [what, command] of Object.entries(KILLS)) {
      it(`ends once, and the next command is right, after root killed ${what}`, async () => {
        const { types, stdout, stderr } = await runner.run(`echo out; ${command}; exit 5`, PRIVILEGED);
        expect(
          types.filter((type) => type === 'exit' || type === 'error' || type === 'timeout'),
        ).to.have.length(1);
        expect([stdout, stderr].join('')).to.match(/^(out\r\n)?(Killed\n)?$/);
        await runner.expectOrder();
        await runner.expectOrder();
      });
    }

    it('is deaf to signals of root that a terminal may send', async () => {
      const before = await runner.loop();
      const { end } = await runner.run(
        'for s in INT QUIT HUP TSTP; do kill -$s $PPID; done; exit 3',
        PRIVILEGED,
      );
      expect(end).to.deep.equal(exit(3));
      await runner.expectNext(before, 'reused');
    });

    it('keeps folder, fifos, descriptors and variables of the session from its user', async () => {
      const tries = [
        'ls "$D"',
        'cat "$D/c"',
        'cat "$D/q"',
        'cat "$D/e"',
        'cat "$D/t"',
        'echo forged >"$D/q"',
        'echo forged >"$D/c"',
        'rm "$D/e"',
        'mkfifo "$D/x"',
        'mv "$D" /tmp/moved',
        'ls /proc/$PPID/fd/',
        'cat /proc/$PPID/environ',
        'cat /proc/$PPID/mem',
        'kill -9 $PPID',
      ];
      for (const attempt of tries) {
        const { stdout, stderr, end } = await runner.run(
          `${FOLDER} [ -d "$D" ] || exit 9; ${attempt} || exit 1`,
        );
        expect([stdout, end], attempt).to.deep.equal(['', exit(1)]);
        expect(stderr, attempt).to.match(/not permitted|denied/);
      }
      await runner.expectOrder();
    });

    it('shows nothing to one user of what another wrote to the fifo of stderr', async () => {
      const before = await runner.loop();
      const forged = await runner.run(`${FOLDER} echo forged >"$D/e"; exit 2`);
      expect([forged.stdout, forged.stderr, forged.end]).to.deep.equal(['', 'forged\n', exit(2)]);
      await runner.expectNext(before, 'reused');
    });

    it('is full of stderr, and all of that comes', async () => {
      const before = await runner.loop();
      const { stderr, end } = await runner.run('head -c 3000000 /dev/zero | tr "\\0" e >&2; exit 4');
      expect(end).to.deep.equal(exit(4));
      expect(stderr === 'e'.repeat(3_000_000)).to.equal(true);
      await runner.expectNext(before, 'reused');
    });

    it('gives nothing to the next command of what is written to the fifo without an end', async () => {
      const flood = `${FOLDER} (trap "" HUP; while :; do echo flood; done >"$D/e") & exit 3`;
      expect((await runner.run(flood)).end).to.deep.equal(exit(3));
      await runner.expectOrder();
      expect(await runner.look('pkill -9 -u user; true')).to.equal('');
      await runner.expectOrder();
    });

    it('takes no output for a line or a marker of its own', async () => {
      const before = await runner.loop();
      const token = '7'.repeat(39);
      const forged = [
        `\x1d${token}0`,
        `\x1d${token}1`,
        `X ${token} 0\n`,
        `I ${token} clean\n`,
        `E - tools\n`,
        `R 1 1 1\nS ${token}\n`,
        '\x1d\x1d1',
      ].join('');
      const { stdout, stderr, end } = await runner.run('printf %s "$T"; printf %s "$T" >&2; exit 9', {
        environment: { T: forged },
      });
      expect([stdout, stderr, end]).to.deep.equal([forged.replaceAll('\n', '\r\n'), forged, exit(9)]);
      await runner.expectNext(before, 'reused');
    });
  });
}
