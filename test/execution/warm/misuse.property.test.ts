import { expect } from 'chai';
import fc from 'fast-check';
import { needs, ROOT } from '../../support/needs.js';
import { eachShell } from '../../support/shells.js';
import type { LocalAnswer } from './local-session.js';
import { LocalSession } from './local-session.js';

const FOLDER = 'D=$({ tr "\\0" "\\n" </proc/$PPID/cmdline; } 2>/dev/null | grep "^/tmp/.serai-" | tail -n 1)';

/** What a command of root does beside printing. None prints anything by itself. */
const MISUSES = [
  'kill -9 $PPID',
  'kill -HUP $PPID',
  'kill -INT $PPID; kill -QUIT $PPID; kill -TSTP $PPID',
  'kill -STOP $PPID; kill -CONT $PPID',
  'exec 0<&-',
  'exec 1>&-',
  'exec 2>&-',
  'exec >/dev/null 2>&1 </dev/null',
  'exec 4>/dev/null 5>/dev/null 6</dev/null',
  'stty raw -echo 2>/dev/null',
  'stty olcuc 2>/dev/null',
  'stty rows 1 cols 1 2>/dev/null',
  '(sleep 0.2; echo LATE; echo LATE >&2) & ',
  'setsid sh -c "sleep 0.2; echo LATE; echo LATE >&2" & ',
  'head -c 70000 /dev/zero >/dev/null',
  `${FOLDER}; case $D in /tmp/.serai-?*) rm -rf "$D" ;; esac`,
  `${FOLDER}; case $D in /tmp/.serai-?*) rm -f "$D/e"; mkfifo "$D/e" 2>/dev/null ;; esac`,
  `${FOLDER}; case $D in /tmp/.serai-?*) kill -9 $(pgrep -f "[c]at $D/e") 2>/dev/null ;; esac`,
];

const misused = fc.record({
  stderrBytes: fc.constantFrom(0, 1, 5000, 200_000),
  misuses: fc.array(fc.constantFrom(...MISUSES), { minLength: 1, maxLength: 3 }),
  code: fc.integer({ min: 0, max: 255 }),
});

/** Expects an ordinary answer, or none at all: never a wrong or an incomplete one. */
function expectRightOrLost(answer: LocalAnswer, out: string, err: string, code: number): void {
  const { end, stdout, stderr } = answer;
  if (end.kind === 'exited') {
    expect([stdout, stderr.length, end.exitCode]).to.deep.equal([out, err.length, code]);
    expect(stderr === err).to.equal(true);
  } else {
    expect(end.kind).to.equal('lost');
    // Where nobody was left to tell of the end, a child in the background may have printed before it was found out.
    const [printed, complained] = [stdout, stderr].map((text) => text.replace(/(LATE\r?\n)+$/, ''));
    expect([out.startsWith(printed ?? ''), err.startsWith(complained ?? '')]).to.deep.equal([true, true]);
  }
  expect(answer.late()).to.equal(0);
}

describe('A session with a terminal: misuse', function () {
  this.timeout(300_000);

  before(function () {
    needs(this, ROOT);
  });

  eachShell((shell) => {
    it(`ends each command once, and the next is right wherever it is clean (${shell[0]})`, async () => {
      let local: LocalSession | undefined;
      let reused = 0;
      try {
        await fc.assert(
          fc.asyncProperty(misused, async ({ stderrBytes, misuses, code }) => {
            local ??= await LocalSession.open(shell);
            const print = `head -c ${stderrBytes} /dev/zero | tr '\\0' e >&2; printf out`;
            const answer = await local.run(() => [print, ...misuses, `exit ${code}`].join('\n'));
            const err = 'e'.repeat(stderrBytes);
            // The readers of stderr are root's to kill: what they had not passed on is gone with them.
            const isCut = misuses.some((misuse) => misuse.includes('pgrep'));
            if (!isCut) expectRightOrLost(answer, 'out', err, code);
            if ((await local.session.settle()) === 'clean') {
              const next = await local.run(() => 'echo next; echo next >&2; exit 3');
              expectRightOrLost(next, 'next\r\n', 'next\n', 3);
              expect(next.end.kind).to.equal('exited');
              reused += 1;
              if ((await local.session.settle()) === 'clean') return;
            }
            const spent = local;
            local = undefined;
            await spent.close();
          }),
          { numRuns: 20, interruptAfterTimeLimit: 60_000 },
        );
      } finally {
        await local?.close();
      }
      expect(reused).to.be.greaterThan(0);
    });
  });
});
