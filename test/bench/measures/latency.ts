import type { CommandFigures } from '../client.js';
import type { Party } from '../stack.js';
import type { Measure } from './measure.js';
import { pause, Samples, timed } from './measure.js';

/** What is left of a command, on either path, is over by then. */
const PAUSE_MS = 100;
const NEXT = 4;

/**
 * One command at a time, on an otherwise idle machine: the first on a runner that was just claimed, then later ones once
 * the pool is full again. The parties take turns command by command, so that they have the same machine.
 */
export const latency: Measure = async (stack, { rounds }) => {
  const samples = new Samples();
  const note = (party: Party, what: string, { firstOutputMs, endMs }: CommandFigures): void => {
    samples.add(`${what}, first output`, party.name, firstOutputMs);
    samples.add(`${what}, exit`, party.name, endMs);
  };
  for (let round = 0; round < rounds; round += 1) {
    const runners = new Map<Party, string>();
    for (const party of stack.parties) {
      await stack.settled();
      const { ms, result: runner } = await timed(() => party.client.claim());
      runners.set(party, runner);
      const first = await party.client.run(runner, 'echo hi', 'hi');
      samples.add('claim', party.name, ms);
      note(party, 'first execute', first);
      samples.add('claim and first execute, exit', party.name, ms + first.endMs);
    }
    await stack.settled();
    for (let again = 0; again < NEXT; again += 1) {
      for (const [party, runner] of runners) {
        await pause(PAUSE_MS);
        note(party, 'next execute', await party.client.run(runner, 'echo hi', 'hi'));
      }
    }
    for (const [party, runner] of runners) await party.client.release(runner);
  }
  return samples.figures;
};
