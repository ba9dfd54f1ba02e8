import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect } from 'chai';
import { Dice } from './dice.js';

const PROGRAM = path.resolve(import.meta.dirname, 'chaos.ts');

describe('chaos', function () {
  this.timeout(180_000);

  it('breaks no invariant in a short run of two replicas', async () => {
    const args = ['--import', 'tsx', PROGRAM, '--seconds', '20', '--seed', '1'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    }
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code, text).to.equal(0);
    expect(text)
      .to.match(/^faults \([1-9]/m)
      .and.to.match(/^claims \([1-9]/m);
  });
});

describe('Dice', () => {
  it('throws the same for the same seed and actor, whatever others throw meanwhile', () => {
    const throws = (dice: Dice): number[] => [1, 2, 3].map(() => dice.between(0, 1_000_000));
    const one = new Dice(7);
    const first = throws(one.split('client 1'));
    throws(one.split('client 2'));
    one.random();
    expect(throws(one.split('client 1'))).to.deep.equal(first);
    expect(throws(new Dice(7).split('client 1'))).to.deep.equal(first);
    expect(throws(new Dice(8).split('client 1'))).to.not.deep.equal(first);
    expect(throws(new Dice(7).split('client 2'))).to.not.deep.equal(first);
  });
});
