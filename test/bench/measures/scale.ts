import type { Figure } from '../figures.js';
import { quantile } from '../figures.js';
import { arrive } from '../open-loop.js';
import type { Usage } from '../process.js';
import { ScaleStack } from '../scale-stack.js';
import { describeLoad, machineCpuMs } from '../machine.js';
import type { AloneMeasure, Scale } from './measure.js';
import { pause, Samples, timed } from './measure.js';

/** Whose figures these are: sessions are off. */
const PARTY = 'cold';
const LISTINGS = 20;
const CLAIMERS = 8;

/** How the runners are spread, by the text that names it in the figures. */
interface Layout {
  readonly name: string;
  readonly environments: number;
  readonly pool: number;
}

/**
 * What very many runners cost: a restart, claims by the clock, a flood of events, listings. Each layout has an agent of its
 * own, so none finds what another left behind.
 */
export const scale: AloneMeasure = async (options, amount) => {
  const samples = new Samples();
  for (const layout of layoutsOf(amount)) {
    const note = (what: string, value: number, unit: Figure['unit'] = ''): void =>
      samples.add(`${what}, ${layout.name}`, PARTY, value, unit);
    console.error(`  ${layout.name}; ${describeLoad()}`);
    const { environments, pool } = layout;
    await using stack = await ScaleStack.open({ ...options, environments, pool });
    await restart(stack, amount, note);
    await listings(stack, note);
    await claims(stack, amount, note);
    await recoveryAndFlood(stack, amount, note);
  }
  return samples.figures;
};

type Note = (what: string, value: number, unit?: Figure['unit']) => void;

function layoutsOf({ scaleRunners }: Scale): Layout[] {
  const single = scaleRunners.map((pool) => ({ name: `${pool} runners`, environments: 1, pool }));
  const pool = Math.ceil(Math.max(...scaleRunners) / 10);
  return [...single, { name: `10 environments of ${pool} runners`, environments: 10, pool }];
}

async function restart(stack: ScaleStack, { scaleUsed }: Scale, note: Note): Promise<void> {
  const all = stack.options.environments * stack.options.pool;
  await inParallel(scaleUsed, (n) => claim(stack, n));
  await stack.untilTotals({ idle: all, used: scaleUsed });
  await stack.stop();
  const startedMs = performance.now();
  await stack.start();
  const before = await stack.service.usage();
  await stack.untilTotals({ idle: all, used: scaleUsed });
  note('in sync after a restart', performance.now() - startedMs, 'ms');
  const after = await stack.service.usage();
  note('processor time of a recovery for each runner', (after.cpuMs - before.cpuMs) / all, 'ms');
  note('longest block of the loop in a recovery', blockOf(after), 'ms');
  note('resident memory once in sync', after.residentBytes / 1e6, 'MB');
  const settled = await stack.service.settledUsage();
  note('live memory of the service', settled.heapBytes / 1e6, 'MB');
}

async function listings(stack: ScaleStack, note: Note): Promise<void> {
  for (const path of ['/statistics/execution-environments', '/execution-environments']) {
    for (let n = 0; n < LISTINGS; n += 1) {
      note(`GET ${path}`, (await timed(() => stack.client.request('GET', path))).ms, 'ms');
    }
  }
}

async function claims(stack: ScaleStack, amount: Scale, note: Note): Promise<void> {
  const { scaleClaimsPerSecond: perSecond, scaleSeconds: seconds } = amount;
  const [before, ownBefore, allBefore] = [await usageOf(stack), ownCpuMs(), machineCpuMs()];
  const { latenciesMs, failures } = await arrive(perSecond, seconds, (n) => claim(stack, n));
  const [after, own, all] = [await usageOf(stack), ownCpuMs() - ownBefore, machineCpuMs() - allBefore];
  const name = `claims at ${perSecond} a second`;
  for (const latencyMs of latenciesMs) note(name, latencyMs, 'ms');
  note(`${name}, p99`, quantile(latenciesMs, 0.99), 'ms');
  note(`${name}, longest`, Math.max(...latenciesMs), 'ms');
  note(`${name}, refused`, failures);
  const service = after.service.cpuMs - before.service.cpuMs;
  const agent = after.agent.cpuMs - before.agent.cpuMs;
  note('processor time of the service for a claim and a refill', service / latenciesMs.length, 'ms');
  note('processor time of the agent for a claim and a refill', agent / latenciesMs.length, 'ms');
  // Where this is not small the latencies are those of a busy machine.
  const others = Math.max(0, all - own - service - agent) / seconds;
  note('processor time of other programs, each second of claiming', others, 'ms');
  note('longest block of the loop while claiming', blockOf(after.service), 'ms');
  note('resident memory after the claims', after.service.residentBytes / 1e6, 'MB');
}

async function usageOf({ service, agent }: ScaleStack): Promise<{ service: Usage; agent: Usage }> {
  const [ofService, ofAgent] = await Promise.all([service.usage(), agent.usage()]);
  return { service: ofService, agent: ofAgent };
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * A restart over the relay, which counts what it asks for, and then events that were held back while runners were claimed
 * and replaced, all at once.
 */
async function recoveryAndFlood(stack: ScaleStack, { scaleEvents }: Scale, note: Note): Promise<void> {
  const { relay } = stack;
  const all = stack.options.environments * stack.options.pool;
  await stack.untilTotals({ idle: all });
  await stack.stop();
  await stack.start('relay');
  await stack.untilTotals({ idle: all });
  const used = (await stack.totals())?.used ?? 0;
  note('requests of a recovery beside those for used runners', relay.requests - used);

  relay.hold();
  let claimed = 0;
  await inParallel(Math.floor(all * 0.9), async (n) => {
    if (relay.heldEvents < scaleEvents && (await claim(stack, n))) claimed += 1;
  });
  await untilStill(() => relay.heldEvents);
  const [before, streams, lists] = [await stack.service.usage(), relay.streams, relay.lists];
  const events = relay.heldEvents;
  const startedMs = performance.now();
  relay.letGo();
  await stack.untilTotals({ idle: all, used: used + claimed });
  const absorbedMs = performance.now() - startedMs;
  const after = await stack.service.usage();
  note('events at once', events);
  note('events at once, until all are known', absorbedMs, 'ms');
  note('events at once, processor time of the service for each', (after.cpuMs - before.cpuMs) / events, 'ms');
  note('events at once, longest block of the loop', blockOf(after), 'ms');
  note('events at once, streams opened anew', relay.streams - streams);
  note('events at once, listings', relay.lists - lists);
}

async function claim(stack: ScaleStack, n: number): Promise<boolean> {
  const body = { executionEnvironmentId: n % stack.options.environments, inactivityTimeout: 900 };
  return (await stack.client.send('POST', '/runners', body)).status === 200;
}

/** Resolves when a count has stood still for a while. */
async function untilStill(count: () => number): Promise<void> {
  for (let last = -1; last !== count(); await pause(500)) last = count();
}

/** Does so many things, some at a time. */
async function inParallel(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next; n < count; n = next) {
      next += 1;
      await work(n);
    }
  };
  await Promise.all(Array.from({ length: CLAIMERS }, worker));
}

/** The longest block since the reading before. */
function blockOf({ longestBlockMs }: Usage): number {
  return longestBlockMs ?? Number.NaN;
}
