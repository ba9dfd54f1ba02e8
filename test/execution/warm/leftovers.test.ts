import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { processesWith } from '../../support/living-processes.js';
import { eventually } from '../../support/waiting.js';
import type { Runner } from './place.js';
import { exit, PATHS, PATIENCE_MS, Place } from './place.js';

/** A program that ends by itself only after the tests, with a mark among its arguments. */
function sleeper(mark: string): string {
  return `sh -c 'sleep 600; : ${mark}'`;
}

for (const path of PATHS) {
  describe(`What a command leaves behind, with warm sessions ${path}`, function () {
    this.timeout(180_000);
    let place: Place;
    let runner: Runner;
    let mark: string;

    before(async function () {
      place = await Place.open(this, { path });
    });
    beforeEach(async () => {
      mark = randomUUID();
      runner = await place.claim();
    });
    afterEach(() => place.giveBack(runner));
    after(() => place?.[Symbol.asyncDispose]());

    it('hangs up with its terminal, and does not hold the end back', async () => {
      const before = await runner.loop();
      const { stdout, end } = await runner.run(`${sleeper(mark)} & echo done`);
      expect([stdout, end]).to.deep.equal(['done\r\n', exit(0)]);
      await eventually('the end of the child', () => processesWith(mark).length === 0, PATIENCE_MS);
      await runner.expectNext(before, 'reused');
    });

    it('may hang up by itself and leave nothing, many times', async () => {
      const before = await runner.loop();
      for (let i = 0; i < 10; i += 1) {
        const { end } = await runner.run(`${sleeper(mark)} & (${sleeper(mark)} &); exit ${i}`);
        expect(end).to.deep.equal(exit(i));
      }
      await eventually('the end of the children', () => processesWith(mark).length === 0, PATIENCE_MS);
      await runner.expectNext(before, 'reused');
    });

    const SURVIVORS: Record<string, string> = {
      nohup: 'nohup $SLEEPER >/dev/null 2>&1 &',
      'nohup with the terminal': 'nohup $SLEEPER &',
      setsid: 'setsid $SLEEPER &',
      'setsid without variables': 'setsid -f env -i $SLEEPER',
      'a mark of another execution':
        'setsid env SERAI_EXECUTION=00000000-0000-0000-0000-000000000000 $SLEEPER &',
      'a trap': `(trap '' HUP; $SLEEPER) &`,
      'a daemon': '(setsid sh -c "$SLEEPER &" >/dev/null 2>&1 </dev/null &)',
    };
    for (const [how, command] of Object.entries(SURVIVORS)) {
      it(`lives on until the runner is returned where it ignores that: ${how}`, async () => {
        const before = await runner.loop();
        const survivor = command.replace('$SLEEPER', sleeper(mark).replaceAll('"', '\\"'));
        // It has begun, and is away from the terminal, before the command ends.
        const begun = `until pgrep -f "^sh -c sleep 600; : ${mark}" >/dev/null; do sleep 0.01; done`;
        const { types, end } = await runner.run(`${survivor}\n${begun}; echo done; exit 3`);
        expect([types.at(-1), end]).to.deep.equal(['exit', exit(3)]);
        await runner.expectNext(before, 'replaced');
        await runner.expectOrder();
        expect(processesWith(mark)).to.not.deep.equal([]);
        await place.giveBack(runner);
        await eventually('the end of the child', () => processesWith(mark).length === 0, PATIENCE_MS);
      });
    }

    it('is not heard of any more', async () => {
      const before = await runner.loop();
      const go = `/tmp/go-${mark}`;
      const late = `until [ -e ${go} ]; do sleep 0.01; done; echo LATE; echo LATE >&2; echo LATE >/dev/tty; : >${go}-gone`;
      await runner.run(
        `(trap '' HUP TTOU TTIN; ${late}) & setsid -f sh -c '${late}'; setsid -f env SERAI_EXECUTION=1 sh -c '${late}'; exit 0`,
      );
      const { stdout, stderr } = await runner.run(
        `: >${go}; until [ -e ${go}-gone ]; do sleep 0.01; done; sleep 0.2; echo mine`,
      );
      expect([stdout, stderr]).to.deep.equal(['mine\r\n', '']);
      await runner.expectNext(before, 'replaced');
      await runner.expectOrder();
    });

    it('has no input of the next command', async () => {
      await runner.run(`(trap '' HUP TTIN; while read x; do echo "stole $x"; done </dev/tty) & exit 0`);
      for (let i = 0; i < 5; i += 1) {
        const { stdout } = await runner.run('read x; echo "got $x"', {}, ({ socket }) =>
          socket.send(`${i}\n`),
        );
        expect(stdout).to.equal(`${i}\r\ngot ${i}\r\n`);
      }
    });

    it('lives until the last execution ends where one was cut meanwhile', async () => {
      const held = runner.run(`setsid -f env -i ${sleeper(mark)}; echo on; read x; exit 5`, {}, (client) => {
        client.onMessage = ({ type }) => {
          if (type !== 'stdout') return;
          void runner.runNow('sleep 600', { timeLimit: 1 }).then(async ({ end }) => {
            expect(end).to.deep.equal({ type: 'timeout' });
            // Begins only when nothing of the one that was cut is left.
            await runner.expectNow();
            expect(processesWith(mark)).to.not.deep.equal([]);
            client.socket.send('\n');
          });
          client.onMessage = () => undefined;
        };
      });
      expect((await held).end).to.deep.equal(exit(5));
      await eventually('the end of the child', () => processesWith(mark).length === 0, PATIENCE_MS);
      await runner.expectOrder();
      await runner.expectOrder();
    });

    it('is all gone after a time limit, and the next command is right', async () => {
      const hide = `setsid ${sleeper(mark)} & setsid -f env -i ${sleeper(mark)}; nohup ${sleeper(mark)} & sleep 600`;
      const { end } = await runner.run(hide, { timeLimit: 1 });
      expect(end).to.deep.equal({ type: 'timeout' });
      await runner.expectNow();
      expect(processesWith(mark)).to.deep.equal([]);
      await runner.expectOrder();
    });
  });
}
