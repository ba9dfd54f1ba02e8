interface Entry {
  readonly atMs: number;
  readonly what: string;
}

/** Something that must never happen; ends the run. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly runnerId: string | undefined;

  constructor(message: string, runnerId?: string) {
    super(message);
    this.runnerId = runnerId;
  }
}

/** What happened to whom: counts for the summary, and a time line for each runner and of the faults. */
export class History {
  readonly violations: Violation[] = [];
  readonly #startMs = performance.now();
  readonly #counts = new Map<string, Map<string, number>>();
  readonly #runners = new Map<string, Entry[]>();
  readonly #faults: Entry[] = [];

  get nowMs(): number {
    return performance.now() - this.#startMs;
  }

  count(group: string, name: string): void {
    const counts = this.#counts.get(group) ?? new Map<string, number>();
    this.#counts.set(group, counts);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  total(group: string): number {
    return [...(this.#counts.get(group)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
  }

  fault(what: string): void {
    this.#faults.push({ atMs: this.nowMs, what });
  }

  note(runnerId: string, what: string): void {
    const entries = this.#runners.get(runnerId) ?? [];
    this.#runners.set(runnerId, entries);
    entries.push({ atMs: this.nowMs, what });
  }

  /** A runner came to a client. It must be the first time, ever. */
  claimed(runnerId: string, client: string): void {
    const isAgain = this.#runners.has(runnerId);
    this.note(runnerId, `claimed by ${client}`);
    if (isAgain) this.violate(`runner ${runnerId} was given to a second client`, runnerId);
  }

  violate(message: string, runnerId?: string): void {
    this.violations.push(new Violation(message, runnerId));
  }

  /** Counts by group, a line for each. */
  summary(): string {
    return [...this.#counts]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([group, counts]) => {
        const parts = [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([name, n]) => `${name} ${n}`);
        return `${group} (${this.total(group)}): ${parts.join(', ')}`;
      })
      .join('\n');
  }

  /** What happened to a runner, and all faults, in order of time. */
  timeLine(runnerId: string | undefined): string {
    const own = runnerId === undefined ? [] : (this.#runners.get(runnerId) ?? []);
    const lines = [...own, ...this.#faults.map(({ atMs, what }) => ({ atMs, what: `fault: ${what}` }))];
    return lines
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ atMs, what }) => `${(atMs / 1000).toFixed(3).padStart(9)} s  ${what}`)
      .join('\n');
  }
}
