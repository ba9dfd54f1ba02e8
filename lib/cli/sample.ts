import type { EnvironmentDefinition } from '../environments/definitions.js';
import { messageOf } from '../base/errors.js';
import type { ApiClient, ProgramResult } from './api-client.js';
import type { Talk } from './talk.js';

/** Generous for a compiler on a busy machine. */
const TIME_LIMIT_SECONDS = 60;

/**
 * Sends a definition's sample program through the public API, shows it with its times, and tells whether it printed
 * what it has to. Failures are shown, not thrown.
 */
export async function runSample(
  api: ApiClient,
  { environment, sample }: EnvironmentDefinition,
  talk: Talk,
): Promise<boolean> {
  talk.say('sample', `${environment.name ?? environment.image}: ${sample.command.trimEnd()}`);
  try {
    const startedMs = performance.now();
    const { runnerId } = await api.claim(environment.id);
    const claimMs = performance.now() - startedMs;
    try {
      const result = await api.run(runnerId, sample.command, TIME_LIMIT_SECONDS);
      return report(result, claimMs, sample.expect, talk);
    } finally {
      await api.return(runnerId);
    }
  } catch (error) {
    talk.say('failed', messageOf(error));
    return false;
  }
}

function report(result: ProgramResult, claimMs: number, expected: string, talk: Talk): boolean {
  const { stdout, stderr, exitCode, end, firstOutputMs, endMs } = result;
  const isRight = exitCode === 0 && stdout.includes(expected);
  talk.say('output', plain(stdout + stderr));
  const times = [
    `claim ${milliseconds(claimMs)}`,
    ...(firstOutputMs === undefined ? [] : [`first output ${milliseconds(firstOutputMs)}`]),
    `end ${milliseconds(endMs)}`,
  ].join(', ');
  talk.say('exit', `${exitCode ?? end} (${times})`);
  if (!isRight) talk.say('failed', `the output should contain ${JSON.stringify(expected)}, with exit code 0`);
  return isRight;
}

/** A terminal's line ends, as one writes them to another. */
function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').trimEnd();
}

function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
