/** What came of requests that were sent by the clock. */
export interface Arrivals {
  /** From the time at which each was due, so that whoever waits for a late one before it is counted. */
  readonly latenciesMs: readonly number[];
  readonly failures: number;
}

/**
 * Sends requests at an even rate, whatever becomes of those before: as clients do that know nothing of each other. A
 * client that waited for each answer would send none while the service stands still, and hide that it does.
 */
export async function arrive(
  perSecond: number,
  seconds: number,
  send: (n: number) => Promise<boolean>,
): Promise<Arrivals> {
  const startedMs = performance.now();
  const latenciesMs: number[] = [];
  const underWay: Promise<void>[] = [];
  let failures = 0;
  const count = Math.round(perSecond * seconds);
  for (let n = 0; n < count; n += 1) {
    const dueMs = startedMs + (n * 1000) / perSecond;
    const earlyMs = dueMs - performance.now();
    if (earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const one = async (): Promise<void> => {
      const isGood = await send(n).catch(() => false);
      if (isGood) latenciesMs.push(performance.now() - dueMs);
      else failures += 1;
    };
    underWay.push(one());
  }
  await Promise.all(underWay);
  return { latenciesMs, failures };
}
