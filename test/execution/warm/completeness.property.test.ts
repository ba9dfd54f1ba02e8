import { expect } from 'chai';
import fc from 'fast-check';
import { needs, ROOT } from '../../support/needs.js';
import { eachShell } from '../../support/shells.js';
import type { LocalAnswer } from './local-session.js';
import { LocalSession } from './local-session.js';

type Stream = 'stdout' | 'stderr';

/** A piece of output; `T` stands for the beginning of the command's token, more of which than any program knows. */
const piece = fc.oneof(
  fc
    .tuple(fc.constantFrom('x', '7', '\x1d', 'ä'), fc.integer({ min: 0, max: 40_000 }))
    .map(([text, count]) => text.repeat(count)),
  fc.constantFrom(
    '\x1d',
    '\x1d7',
    '\x1dT',
    '\x1d\x1dT',
    '\x1dT0',
    '\x1dT2',
    'T1',
    'T\n',
    'X T 0\n',
    'I T clean\n',
    'S T\nE T folder\n',
    '\x1d1234567890123456789012345678901234567890',
  ),
  fc.string({ unit: fc.constantFrom('\x1d', '0', '1', '2', 'a', '\n'), maxLength: 60 }),
);

const printing = fc.record({
  pieces: fc.array(fc.record({ stream: fc.constantFrom<Stream>('stdout', 'stderr'), text: piece }), {
    maxLength: 8,
  }),
  atOnce: fc.boolean(),
  code: fc.integer({ min: 0, max: 255 }),
});
/** All of a token but what makes it whole. */
function begin(token: string): string {
  return token.slice(0, -5);
}

type Printing = typeof printing extends fc.Arbitrary<infer T> ? T : never;

/** Shell that prints the pieces, which are in variables: each stream by itself at once, or all in their order. */
function program({ pieces, atOnce, code }: Printing): string {
  const print = (wanted?: Stream): string =>
    pieces
      .map(({ stream }, index) =>
        stream === (wanted ?? stream) ? `printf %s "$P${index}"${stream === 'stderr' ? ' >&2' : ''};` : '',
      )
      .join(' ');
  const all = atOnce ? `{ ${print('stdout')} :; } & { ${print('stderr')} :; } & wait;` : print();
  return `${all} exit ${code}`;
}

function expectAll({ pieces, code }: Printing, token: string, answer: LocalAnswer): void {
  const text = (wanted: Stream): string =>
    Buffer.from(
      pieces
        .filter(({ stream }) => stream === wanted)
        .map(({ text }) => text.replaceAll('T', begin(token)))
        .join(''),
    ).toString('latin1');
  expect(answer.end).to.deep.equal({ kind: 'exited', exitCode: code });
  expect(answer.stdout === text('stdout').replaceAll('\n', '\r\n'), 'stdout').to.equal(true);
  expect(answer.stderr === text('stderr'), 'stderr').to.equal(true);
  expect(answer.late()).to.equal(0);
}

describe('A session with a terminal: completeness', function () {
  this.timeout(300_000);

  before(function () {
    needs(this, ROOT);
  });

  eachShell((shell) => {
    it(`tells of the end of a command after all of its output, one command after the other (${shell[0]})`, async () => {
      const local = await LocalSession.open(shell);
      try {
        await fc.assert(
          fc.asyncProperty(fc.array(printing, { minLength: 1, maxLength: 4 }), async (commands) => {
            for (const command of commands) {
              let used = '';
              const answer = await local.run(
                (token) => {
                  used = token;
                  return program(command);
                },
                (token) =>
                  Object.fromEntries(
                    command.pieces.map(({ text }, index) => [
                      `P${index}`,
                      text.replaceAll('T', begin(token)),
                    ]),
                  ),
              );
              expectAll(command, used, answer);
              expect(await local.session.settle()).to.equal('clean');
            }
          }),
          { numRuns: 60, interruptAfterTimeLimit: 60_000 },
        );
      } finally {
        await local.close();
      }
    });
  });
});
