import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import type { ServiceClient } from '../support/test-service.js';
import { TestService } from '../support/test-service.js';
import { eventually } from '../support/waiting.js';

/** Executions of the measured part; EXECUTIONS=500 makes it a long one. */
const COUNT = Number(process.env['EXECUTIONS'] ?? 40);
const PARALLEL = 4;
/** Beyond noise; what one leaked execution holds is several times as much. */
const BYTES_PER_EXECUTION = 4096;
const NOISE_BYTES = 2 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/**
 * Runs commands on so many runners, one after the other on each; every second client drops in the middle. A runner that
 * is given up, because a busy machine did not end a dropped program in time, is replaced.
 */
async function load(client: ServiceClient, runners: string[], count: number): Promise<void> {
  let left = count;
  const work = async (place: number): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const isDropped = left % 2 === 1;
      const program = await client.open(
        runners[place] ?? '',
        isDropped ? 'echo go; sleep 600' : 'echo a; echo b >&2',
      );
      if (isDropped) {
        await eventually(
          'the program to run',
          () => program.text('stdout') !== '' || program.closeCode !== undefined,
        );
        program.socket.terminate();
      }
      await program.closed();
      const end = program.messages.at(-1);
      if (end?.type === 'error') runners[place] = await client.claim();
      else if (!isDropped) expect(end).to.deep.equal({ type: 'exit', data: 0 });
    }
  };
  await Promise.all(
    runners.map(async (_, place) => {
      while (left > 0) {
        await work(place).catch(async (error: unknown) => {
          if (!String(error).includes('answered with 410')) throw error;
          runners[place] = await client.claim();
        });
      }
    }),
  );
}

describe('executions', function () {
  this.timeout(600_000);

  it(`leave nothing behind after ${COUNT}, half of them with a client that drops [A1-32]`, async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    await using opened = await TestService.open();
    const { client } = opened;
    await client.openPool(PARALLEL);
    const runners = await Promise.all(Array.from({ length: PARALLEL }, () => client.claim()));
    await client.untilIdle(PARALLEL);

    await load(client, runners, 20);
    const before = { heap: heapBytes(), resources: resources() };
    await load(client, runners, COUNT);
    await eventually('sockets, processes and timers to be as before', () => {
      const now = resources();
      return ['TCPSocketWrap', 'ProcessWrap', 'PipeWrap', 'Timeout'].every(
        (name) => (now[name] ?? 0) <= (before.resources[name] ?? 0),
      );
    });
    const grownBytes = heapBytes() - before.heap;
    expect(grownBytes).to.be.lessThan(NOISE_BYTES + COUNT * BYTES_PER_EXECUTION);
    expect(warnings.map(({ name }) => name)).not.to.include('MaxListenersExceededWarning');
    process.off('warning', onWarning);
    expect(await client.statistics()).to.include({ usedRunners: PARALLEL });
  });
});
