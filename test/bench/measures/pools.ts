import type { Party, ServiceParty, Stack } from '../stack.js';
import type { Measure } from './measure.js';
import { Samples } from './measure.js';

const CLAIMS = 8;
const WORKERS = 4;

/** A pool that is claimed empty, and whole runs one after the other. */
export const refill: Measure = async (stack, { seconds }) => {
  const samples = new Samples();
  for (const party of stack.services) {
    await stack.settled();
    const startedMs = performance.now();
    const count = Math.min(CLAIMS, stack.pool);
    const runners = await Promise.all(Array.from({ length: count }, () => party.client.claim()));
    await party.untilFull();
    samples.add(
      `pool of ${stack.pool} full again after ${count} claims`,
      party.name,
      performance.now() - startedMs,
    );
    await Promise.all(runners.map((runner) => party.client.release(runner)));
    await stack.settled();
    await wholeRuns(party, samples, seconds);
  }
  return samples.figures;
};

async function wholeRuns(party: Party, samples: Samples, seconds: number): Promise<void> {
  const startedMs = performance.now();
  let done = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - startedMs < seconds * 1000) {
      const runner = await claimWhenIdle(party);
      await party.client.run(runner, 'echo ok', 'ok');
      await party.client.release(runner);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  const rate = done / ((performance.now() - startedMs) / 1000);
  samples.add(`claim, execute, return, ${WORKERS} at once`, party.name, rate, '/s');
}

/** A pool that is empty for the moment is a matter of waiting, as for any client. */
async function claimWhenIdle({ client }: Party): Promise<string> {
  for (;;) {
    const answer = await client.send('POST', '/runners', {
      executionEnvironmentId: 0,
      inactivityTimeout: 900,
    });
    if (answer.status === 200) return (JSON.parse(answer.body.toString()) as { runnerId: string }).runnerId;
    if (answer.status !== 500) throw new Error(`a claim was answered with ${answer.status}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const MORE = 50;
const BUSY = 30;

/** What runners cost the service in memory, all garbage collected: resident, and live in the heap and in buffers. */
export const memory: Measure = async (stack, { rounds }) => {
  const samples = new Samples();
  const more = Math.min(MORE, rounds * 5);
  for (const party of stack.services) {
    await party.resize(stack.pool + more);
    await stack.settled(); // what it takes from the system once, it has by now
    await party.resize(stack.pool);
    const few = await measured(stack, party);
    await party.resize(stack.pool + more);
    const many = await measured(stack, party);
    await party.resize(stack.pool);
    note(samples, party, 'idle', { before: few, after: many, count: more });
    await busy(stack, samples, party, Math.min(BUSY, rounds * 5));
  }
  return samples.figures;
};

async function busy(stack: Stack, samples: Samples, party: ServiceParty, count: number): Promise<void> {
  await stack.withRunners(party, count, async (runners) => {
    const before = await measured(stack, party);
    const sockets = await Promise.all(
      runners.map((runner) => party.client.open(runner, 'echo ready; read _')),
    );
    await Promise.all(
      sockets.map(
        (socket) =>
          new Promise((resolve) =>
            socket.on('message', (data: Buffer) => data.includes('ready') && resolve(undefined)),
          ),
      ),
    );
    note(samples, party, 'busy', { before, after: await measured(stack, party), count });
    await Promise.all(
      sockets.map((socket) => {
        const closed = new Promise((resolve) => socket.on('close', resolve));
        socket.send('\n');
        return closed;
      }),
    );
  });
}

interface Memory {
  readonly residentBytes: number;
  readonly heapBytes: number;
}

async function measured(stack: Stack, party: Party): Promise<Memory> {
  await stack.settled();
  return party.process.settledUsage();
}

function note(
  samples: Samples,
  party: Party,
  kind: 'idle' | 'busy',
  { before, after, count }: { readonly before: Memory; readonly after: Memory; readonly count: number },
): void {
  const each = (what: keyof Memory): number => (after[what] - before[what]) / count / 1024;
  samples.add(
    `memory of the service for ${kind === 'idle' ? 'an idle' : 'a busy'} runner, resident`,
    party.name,
    each('residentBytes'),
    'KB',
  );
  samples.add(
    `memory of the service for ${kind === 'idle' ? 'an idle' : 'a busy'} runner, live`,
    party.name,
    each('heapBytes'),
    'KB',
  );
}
