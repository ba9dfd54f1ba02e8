import type { Figure } from '../figures.js';
import type { PartyName, Stack } from '../stack.js';

/** How much is measured. */
export interface Scale {
  readonly rounds: number;
  readonly seconds: number;
  /** How long nothing may happen for the background to count as still. */
  readonly quietMs: number;
  /** Runners in the smaller and in the larger of the two loads. */
  readonly fewRunners: number;
  readonly manyRunners: number;
  readonly outputBytes: number;
  readonly soakCommands: number;
  readonly soakRunners: number;
  /** Simulated runners, from few to very many. */
  readonly scaleRunners: readonly number[];
  /** Those in use when the service is restarted. */
  readonly scaleUsed: number;
  readonly scaleClaimsPerSecond: number;
  readonly scaleSeconds: number;
  /** Events that arrive at once, as far as there are runners to be claimed for them. */
  readonly scaleEvents: number;
}

export const FULL: Scale = {
  rounds: 15,
  seconds: 6,
  quietMs: 1500,
  fewRunners: 8,
  manyRunners: 64,
  outputBytes: 30_000_000,
  soakCommands: 20_000,
  soakRunners: 20,
  scaleRunners: [1_000, 3_000, 10_000],
  scaleUsed: 200,
  scaleClaimsPerSecond: 100,
  scaleSeconds: 30,
  scaleEvents: 20_000,
};

/** Tells that the bench runs, and measures nothing worth reading. */
export const QUICK: Scale = {
  rounds: 1,
  seconds: 0.1,
  quietMs: 100,
  fewRunners: 1,
  manyRunners: 2,
  outputBytes: 300_000,
  soakCommands: 60,
  soakRunners: 2,
  scaleRunners: [20],
  scaleUsed: 2,
  scaleClaimsPerSecond: 20,
  scaleSeconds: 0.2,
  scaleEvents: 40,
};

/** Leaves the pools as it found them. */
export type Measure = (stack: Stack, scale: Scale) => Promise<readonly Figure[]>;

/** Measures something with processes of its own, and ends them. */
export type AloneMeasure = (
  options: { readonly profiles: string | undefined; readonly logs: string | undefined },
  scale: Scale,
) => Promise<readonly Figure[]>;

/** Figures that come sample by sample, of several parties in turn. */
export class Samples {
  readonly #figures = new Map<string, Figure & { readonly samples: number[] }>();

  add(name: string, party: PartyName, value: number, unit: Figure['unit'] = 'ms'): void {
    const key = `${party} ${name}`;
    const figure = this.#figures.get(key) ?? { name, party, unit, samples: [] };
    this.#figures.set(key, figure);
    figure.samples.push(value);
  }

  get figures(): readonly Figure[] {
    return [...this.#figures.values()];
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function timed<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly result: T }> {
  const startedMs = performance.now();
  const result = await work();
  return { ms: performance.now() - startedMs, result };
}
