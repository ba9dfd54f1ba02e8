/**
 * Decisions that follow from a seed. Each actor gets dice of its own by name, so what one decides does not depend on how
 * often another was asked, nor on who was faster.
 */
export class Dice {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#state = seed;
  }

  /** Dice of another actor; the same for the same seed and name, whatever was thrown before. */
  split(name: string): Dice {
    let hash = this.#seed ^ 0x811c9dc5;
    for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
    return new Dice(hash >>> 0);
  }

  /** From 0 up to 1 (mulberry32). */
  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.between(0, items.length - 1)] ?? items[0];
  }

  nonce(): string {
    return `n${this.between(0, 0x7fffffff).toString(36)}${this.between(0, 0x7fffffff).toString(36)}`;
  }
}
