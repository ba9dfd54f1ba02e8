import type { Wanted } from '../client.js';
import { SessionClient } from '../session-client.js';
import type { Party } from '../stack.js';
import { runLoad } from './load.js';
import type { Measure } from './measure.js';
import { pause, Samples } from './measure.js';

const PAUSE_MS = 100;
const NEXT = 4;

/** One command at a time over the session socket of a runner. */
export const session: Measure = async (stack, { rounds }) => {
  const samples = new Samples();
  const runners = new Map<Party, string>();
  for (const party of stack.parties) runners.set(party, await party.client.claim());
  await stack.settled();
  for (let round = 0; round < rounds; round += 1) {
    for (const [party, runner] of runners) {
      await using socket = await SessionClient.open(party.url, runner);
      for (let again = 0; again < NEXT; again += 1) {
        await pause(PAUSE_MS);
        const { firstOutputMs, endMs } = await socket.run('echo hi', 'hi');
        samples.add('execute over a session socket, first output', party.name, firstOutputMs);
        samples.add('execute over a session socket, exit', party.name, endMs);
      }
    }
  }
  for (const [party, runner] of runners) await party.client.release(runner);
  return samples.figures;
};

/** Commands one after the other over one session socket for each runner. */
export const sessionLoad: Measure = async (stack, scale) => {
  const samples = new Samples();
  for (const [party, runners] of [
    [stack.warm, scale.fewRunners],
    [stack.floor, scale.fewRunners],
    [stack.warm, scale.manyRunners],
  ] as const) {
    const open = async (runner: string) => {
      const socket = await SessionClient.open(party.url, runner);
      return {
        run: (command: string, wanted: Wanted | string) => socket.run(command, wanted),
        close: () => socket[Symbol.asyncDispose](),
      };
    };
    await runLoad(stack, samples, { party, runners, way: 'over session sockets', open }, scale);
  }
  return samples.figures;
};
