import type { Measure } from './measure.js';
import { Samples } from './measure.js';
import { SessionClient } from '../session-client.js';
import type { Party } from '../stack.js';
import type { RunCommand } from './load.js';

const READINGS = 20;
const EXIT_CODES = 5;
const SHOWN = 5;

/**
 * Many commands, over sockets of their own and over session sockets, each with an answer of its own on both streams and
 * an exit code: what comes back wrong or empty, what
 * is left behind in exec sockets, and whether the service grows.
 */
export const soak: Measure = async (stack, scale) => {
  const samples = new Samples();
  const party = stack.warm;
  await stack.settled();
  const execsBefore = await stack.openExecs();
  const wrong: unknown[] = [];
  const readings = await stack.withRunners(party, scale.soakRunners, (runners) =>
    manyCommands(party, runners, scale.soakCommands, (error) => wrong.push(error)),
  );
  await stack.settled();
  for (const error of wrong.slice(0, SHOWN)) console.error(error);
  const name = `${scale.soakCommands} commands over ${scale.soakRunners} runners`;
  samples.add(`${name}, wrong answers`, party.name, wrong.length, '');
  samples.add(`${name}, exec sockets left`, party.name, (await stack.openExecs()) - execsBefore, '');
  for (const reading of readings) samples.add(`${name}, memory of the service`, party.name, reading, 'MB');
  samples.add(`${name}, growth`, party.name, growthOf(readings), 'MB');
  return samples.figures;
};

/** Resolves with the live memory of the service in MB, read at even steps. */
async function manyCommands(
  party: Party,
  runners: readonly string[],
  count: number,
  onWrong: (error: unknown) => void,
): Promise<number[]> {
  const readings: number[] = [];
  let next = 0;
  const worker = async (runner: string, index: number): Promise<void> => {
    await using session = index % 2 === 0 ? await SessionClient.open(party.url, runner) : undefined;
    const run: RunCommand = (command, wanted) =>
      session ? session.run(command, wanted) : party.client.run(runner, command, wanted);
    while (next < count) {
      const turn = next;
      next += 1;
      const exitCode = turn % EXIT_CODES;
      const command = `echo out-${turn}; echo err-${turn} >&2; exit ${exitCode}`;
      const wanted = { stdout: `out-${turn}`, stderr: `err-${turn}`, exitCode };
      await run(command, wanted).catch(onWrong);
      if (turn % Math.ceil(count / READINGS) === 0) {
        readings.push((await party.process.settledUsage()).heapBytes / 1e6);
      }
    }
  };
  await Promise.all(runners.map(worker));
  return readings;
}

/** From the second quarter, when everything is compiled and every buffer has its size, to the last. */
function growthOf(readings: readonly number[]): number {
  const quarter = Math.floor(readings.length / 4);
  const mean = (part: readonly number[]): number => part.reduce((sum, each) => sum + each, 0) / part.length;
  return mean(readings.slice(-quarter)) - mean(readings.slice(quarter, 2 * quarter));
}
