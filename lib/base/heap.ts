/** A binary heap: adding and taking the first cost the logarithm of its size. `isBefore` is a strict order. */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean;
  readonly #items: T[] = [];

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The item that comes before all others; it stays. */
  get first(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = items[above];
      if (parent === undefined || !this.#isBefore(item, parent)) break;
      items[at] = parent;
      at = above;
    }
    items[at] = item;
  }

  /** Takes the first item out. */
  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last !== undefined && items.length > 0) this.#sink(last);
    return first;
  }

  /** Puts an item into the place of the first, and lets it sink to where it belongs. */
  #sink(item: T): void {
    const items = this.#items;
    let at = 0;
    for (;;) {
      const below = this.#firstBelow(at);
      const child = items[below];
      if (child === undefined || !this.#isBefore(child, item)) break;
      items[at] = child;
      at = below;
    }
    items[at] = item;
  }

  #firstBelow(at: number): number {
    const left = 2 * at + 1;
    const [a, b] = [this.#items[left], this.#items[left + 1]];
    return a !== undefined && b !== undefined && this.#isBefore(b, a) ? left + 1 : left;
  }
}
