import type { Wanted } from '../client.js';
import { cpuMsBelow } from '../process-tree.js';
import type { Party, Stack } from '../stack.js';
import type { Measure, Scale } from './measure.js';
import { Samples } from './measure.js';

/** Runs one command to its end; the output has to be `wanted`. */
export type RunCommand = (command: string, wanted: Wanted | string) => Promise<{ readonly endMs: number }>;

export interface LoadOptions {
  readonly party: Party;
  readonly runners: number;
  /** How commands get there, in the names of the figures. */
  readonly way: string;
  /** Opens a way to one runner, and closes it after the load. */
  readonly open: (runner: string) => Promise<{ readonly run: RunCommand; close(): Promise<void> }>;
}

/** Before it counts, so that the code is compiled and the connections are open. */
const RUN_UP_SECONDS = 1;

/** Commands one after the other in each of some runners, all runners at once: how many a second, and what each costs. */
export async function runLoad(
  stack: Stack,
  samples: Samples,
  options: LoadOptions,
  scale: Scale,
): Promise<void> {
  const { party, way, runners: count, open } = options;
  await stack.withRunners(party, count, async (runners) => {
    const ways = await Promise.all(runners.map(open));
    const during = async (seconds: number, note: (endMs: number) => void): Promise<void> => {
      const startedMs = performance.now();
      const work = async ({ run }: { readonly run: RunCommand }, index: number): Promise<void> => {
        for (let turn = 0; performance.now() - startedMs < seconds * 1000; turn += 1) {
          note((await run(`echo ${index}-${turn}`, `${index}-${turn}`)).endMs);
        }
      };
      await Promise.all(ways.map(work));
    };
    await during(Math.min(RUN_UP_SECONDS, scale.seconds), () => undefined);
    const name = `${count} at once ${way}`;
    const before = await costs(stack, party);
    const startedMs = performance.now();
    let done = 0;
    await during(scale.seconds, (endMs) => {
      done += 1;
      samples.add(`${name}, exit`, party.name, endMs);
    });
    const seconds = (performance.now() - startedMs) / 1000;
    const after = await costs(stack, party);
    await Promise.all(ways.map((each) => each.close()));
    samples.add(`${name}, rate`, party.name, done / seconds, '/s');
    for (const [who, ms] of Object.entries(after)) {
      if (party.name === 'floor' && (who === 'agent' || who === 'runners')) continue;
      samples.add(`${name}, processor time of the ${who}`, party.name, (ms - (before[who] ?? 0)) / done);
    }
  });
}

async function costs(stack: Stack, party: Party): Promise<Record<string, number>> {
  const { user, system } = process.cpuUsage();
  return {
    service: (await party.process.usage()).cpuMs,
    agent: (await stack.agent.usage()).cpuMs,
    client: (user + system) / 1000,
    runners: cpuMsBelow(stack.agent.pid),
  };
}

/** A request and a socket for each command. */
export const load: Measure = async (stack, scale) => {
  const samples = new Samples();
  for (const [party, runners] of [
    [stack.warm, scale.fewRunners],
    [stack.cold, scale.fewRunners],
    [stack.floor, scale.fewRunners],
    [stack.warm, scale.manyRunners],
    [stack.floor, scale.manyRunners],
  ] as const) {
    const open = (runner: string) =>
      Promise.resolve({
        run: (command: string, wanted: Wanted | string) => party.client.run(runner, command, wanted),
        close: () => Promise.resolve(),
      });
    await runLoad(stack, samples, { party, runners, way: 'by POST and socket', open }, scale);
  }
  return samples.figures;
};
