import { Dice } from './dice.js';
import { ChaosClient, INACTIVITY_SECONDS } from './client.js';
import { haveFaults } from './faults.js';
import { History } from './history.js';
import type { ChaosStack, Statistics } from './stack.js';

export interface ChaosOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly clients: number;
}

const ENVIRONMENTS = [0, 1] as const;
/** Sizes between which the pools go, and the one that they have in the end. */
const SIZES = [2, 3, 4] as const;
const LAST_SIZE = 3;
const BACK_MS = 15_000;
/** Above what a service at rest grows by until everything in it was used once. */
const GROWTH_BYTES = 24 * 1024 * 1024;

const settings = (prewarmingPoolSize: number) => ({
  image: 'none',
  prewarmingPoolSize,
  cpuLimit: 20,
  memoryLimit: 64,
  networkAccess: false,
  exposedPorts: null,
});

/** Lets clients and faults loose on the stack, and looks whether everything is as it has to be, then and afterwards. */
export async function runChaos(stack: ChaosStack, options: ChaosOptions): Promise<History> {
  const { seconds, seed, clients } = options;
  const history = new History();
  const dice = new Dice(seed);
  for (const id of ENVIRONMENTS) await putUntilDone(stack, id, LAST_SIZE);
  await stack.settled(isFull, 60_000);
  const ending = AbortSignal.timeout(seconds * 1000);
  const actors = Array.from({ length: clients }, (_, index) => {
    const name = `client ${index}`;
    const { replicas } = stack;
    const own = dice.split(name);
    return new ChaosClient({ name, history, dice: own, replicas, environments: ENVIRONMENTS, pause });
  });
  const working = [
    ...actors.map((actor) => actor.run(ending)),
    changeSizes(stack, { dice: dice.split('sizes'), history, signal: ending }),
  ];
  await haveFaults({ stack, dice: dice.split('faults'), pause }, { history, signal: ending });
  const overMs = performance.now();
  await Promise.all(working);
  await holdsInTheEnd(stack, history, overMs);
  return history;
}

/** The sizes of the pools go up and down. */
async function changeSizes(
  stack: ChaosStack,
  { dice, history, signal }: { readonly dice: Dice; readonly history: History; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await pause(dice.between(1_000, 4_000));
    if (signal.aborted) break;
    const status = await put(stack, dice.pick(ENVIRONMENTS), dice.pick(SIZES), dice.between(0, 1));
    history.count('changes', String(status ?? 'no answer'));
  }
}

async function putUntilDone(stack: ChaosStack, id: number, size: number): Promise<void> {
  const endMs = performance.now() + 2 * BACK_MS;
  for (let turn = 0; performance.now() < endMs; turn += 1) {
    const status = await put(stack, id, size, turn);
    if (status === 201 || status === 204) return;
    await pause(300);
  }
  throw new Error(`environment ${id} could not be changed`);
}

async function put(stack: ChaosStack, id: number, size: number, turn: number): Promise<number | undefined> {
  const replica = stack.replicas[turn % stack.replicas.length] ?? stack.replicas[0];
  try {
    const response = await fetch(`${replica.url}/api/v1/execution-environments/${id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(settings(size)),
      signal: AbortSignal.timeout(10_000),
    });
    await response.text();
    return response.status;
  } catch {
    return undefined; // nobody was there
  }
}

/** After the last fault: the pools are back in time, and nothing is left of anything. */
async function holdsInTheEnd(stack: ChaosStack, history: History, overMs: number): Promise<void> {
  const hold = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    await work().catch((error: unknown) => history.violate(`${what}: ${String(error)}`));
  };
  await hold('the pools are not back', async () => {
    for (const id of ENVIRONMENTS) await putUntilDone(stack, id, LAST_SIZE);
    await stack.settled(isFull, Math.max(1, BACK_MS - (performance.now() - overMs)));
    history.count('back at size after s', String(Math.ceil((performance.now() - overMs) / 1000)));
  });
  await hold('a runner is still in use', () =>
    stack.settled((all) => counts(all, 'usedRunners') === 0, (INACTIVITY_SECONDS + 20) * 1000),
  );
  const pool = ENVIRONMENTS.length * LAST_SIZE;
  await hold('jobs of runners are left', () =>
    until(
      async () => (await stack.runnerJobs()).length,
      (count) => count === pool,
    ),
  );
  await hold('execs are open beside those that are kept ready', () =>
    until(
      async () =>
        (await stack.ask<{ embedded: { openExecs: number } }>('GET', 'agent/self'))?.embedded.openExecs,
      // A session with a terminal has two, one for files has one.
      (count) => count !== undefined && count <= 3 * pool,
    ),
  );
  for (const replica of stack.replicas) {
    const bytes = await replica.growth();
    const mib = Math.round(bytes / 1024 / 1024);
    history.count('heap grown by MiB', `${replica.name} ${mib}`);
    if (bytes > GROWTH_BYTES) history.violate(`the heap of ${replica.name} has grown by ${mib} MiB`);
  }
}

function counts(all: Statistics, name: 'idleRunners' | 'usedRunners'): number {
  return Object.values(all).reduce((sum, each) => sum + each[name], 0);
}

function isFull(all: Statistics): boolean {
  const pools = Object.values(all);
  return (
    pools.length === ENVIRONMENTS.length &&
    pools.every(
      ({ idleRunners, prewarmingPoolSize }) =>
        idleRunners === prewarmingPoolSize && idleRunners === LAST_SIZE,
    )
  );
}

async function until<T>(ask: () => Promise<T>, holds: (value: T) => boolean): Promise<void> {
  let value = await ask();
  for (const endMs = performance.now() + BACK_MS; !holds(value); value = await ask()) {
    if (performance.now() > endMs) throw new Error(`found ${String(value)}`);
    await pause(200);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
