import { expect } from 'chai';
import fc from 'fast-check';
import { inputChunks, parseExecFrame, resizeFrame, stdinFrame } from '../../lib/nomad/exec-frames.js';

/** The frame as plain JSON says it is: the slow way for everything. */
function slowly(text: string): ReturnType<typeof parseExecFrame> {
  return parseExecFrame(Buffer.from(` ${text}`)); // the space keeps it from the fast way
}

describe('exec frames', () => {
  it('carry any bytes of output', () => {
    const streams = fc.constantFrom('stdout', 'stderr');
    fc.assert(
      fc.property(streams, fc.uint8Array({ minLength: 1, maxLength: 6000 }), (stream, bytes) => {
        const data = Buffer.from(bytes);
        const text = JSON.stringify({ [stream]: { data: data.toString('base64') } });
        const expected = { kind: 'output', stream, data };
        expect(parseExecFrame(Buffer.from(text))).to.deep.equal(expected);
        expect(slowly(text)).to.deep.equal(expected);
      }),
    );
  });

  it('mean the same the fast way and the slow way, whatever they hold', () => {
    const piece = fc.constantFrom(
      '{"stdout":{"data":"',
      '{"stderr":{"data":"',
      '"}}',
      'YWE=',
      'YWFh',
      '\\u003d',
      '"',
      '}',
      ',',
      '{',
      '=',
      '"close":true',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const text = pieces.join('');
        expect(parseExecFrame(Buffer.from(text))).to.deep.equal(slowly(text));
      }),
      { numRuns: 3000 },
    );
  });

  it('never make the parser throw', () => {
    const isKnown = (frame: Buffer): boolean =>
      ['output', 'exited', 'other', 'broken'].includes(parseExecFrame(frame).kind);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => isKnown(Buffer.from(bytes))));
    fc.assert(fc.property(fc.json(), (text) => isKnown(Buffer.from(text))));
  });

  const exit = (exitCode: number) => ({ kind: 'exited', exitCode });
  for (const [text, expected] of [
    ['{"exited":true,"result":{}}', exit(0)],
    ['{"exited":true,"result":{"exit_code":0}}', exit(0)],
    ['{"exited":true,"result":{"exit_code":137}}', exit(137)],
    ['{"exited":true,"result":{"exit_code":-1}}', exit(-1)],
    ['{"exited":true}', { kind: 'other' }],
    ['{"exited":false,"result":{}}', { kind: 'other' }],
    ['{"stdout":{"close":true}}', { kind: 'other' }],
    ['{"stdout":{"data":""}}', { kind: 'other' }],
    ['{"stdout":{"data":null,"close":true}}', { kind: 'other' }],
    ['{}', { kind: 'other' }],
    ['{"later":"addition"}', { kind: 'other' }],
    ['{"stdout":{"data":"YQ==","close":true}}', { kind: 'output', stream: 'stdout', data: Buffer.from('a') }],
    ['{"stdout":{"data":"YQ\\u003d\\u003d"}}', { kind: 'output', stream: 'stdout', data: Buffer.from('a') }],
    ['{"stdout":{"data":"YQ=="},"stderr":{"data":"YQ=="}}', { kind: 'broken' }],
    ['{"stdout":{"data":"YQ=="},"exited":true,"result":{}}', { kind: 'broken' }],
    ['{"stdout":{"data":"YQ="}}', { kind: 'broken' }],
    ['{"stdout":{"data":"Y*=="}}', { kind: 'broken' }],
    ['{"stdout":{"data":{}}}', { kind: 'broken' }],
    ['{"exited":true,"result":{"exit_code":1.5}}', { kind: 'broken' }],
    ['null', { kind: 'broken' }],
    ['', { kind: 'broken' }],
    ['{"stdout":{"data":"YQ=="}', { kind: 'broken' }],
  ] as const) {
    it(`read ${text || 'nothing'} as ${JSON.stringify(expected)}`, () => {
      expect(parseExecFrame(Buffer.from(text))).to.deep.equal(expected);
    });
  }

  it('carry input in pieces without copying it, and the size of a terminal', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), (size) => {
        const input = new Uint8Array(size).fill(7);
        const chunks = inputChunks(input);
        expect(chunks.every((chunk) => chunk.length <= 32 * 1024 && chunk.buffer === input.buffer)).to.equal(
          true,
        );
        expect(Buffer.concat(chunks).equals(Buffer.from(input))).to.equal(true);
      }),
    );
    expect(stdinFrame(Buffer.from('hello\n'))).to.equal('{"stdin":{"data":"aGVsbG8K"}}');
    expect(JSON.parse(resizeFrame(132, 50))).to.deep.equal({ tty_size: { height: 50, width: 132 } });
  });
});
