/**
 * Resources that are closed together, last opened first.
 *
 * Node 20 has no AsyncDisposableStack. A failing closer does not keep the others from running; the first failure is
 * thrown at the end.
 */
export class Scope implements AsyncDisposable {
  readonly #closers: (() => void | Promise<void>)[] = [];
  #closing: Promise<void> | undefined;

  /** Registers `close` for the end of the scope. */
  defer(close: () => void | Promise<void>): void {
    this.#closers.push(close);
  }

  /** Registers a resource and returns it. */
  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(async () => {
      await resource[Symbol.asyncDispose]();
    });
    return resource;
  }

  /** Runs every closer once, in reverse; every caller gets the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
