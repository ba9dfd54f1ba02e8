import { HttpFailure } from './failure.js';

/**
 * A JSON object from outside, read field by field.
 *
 * As in Go, a field that is missing or null takes its default, and one of another type is refused with 400.
 */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #where: string;

  private constructor(values: Readonly<Record<string, unknown>>, where: string) {
    this.#values = values;
    this.#where = where;
  }

  static of(value: unknown, where: string): Fields {
    if (!isObject(value)) throw wrongType(value, where, 'object');
    return new Fields(value, where);
  }

  raw(name: string): unknown {
    return this.#values[name] ?? null;
  }

  has(name: string): boolean {
    return this.raw(name) !== null;
  }

  string(name: string, fallback: string): string {
    const value = this.raw(name) ?? fallback;
    if (typeof value !== 'string') throw wrongType(value, this.#at(name), 'string');
    return value;
  }

  integer(name: string, fallback: number): number {
    const value = this.raw(name) ?? fallback;
    if (typeof value !== 'number' || !Number.isInteger(value)) throw wrongType(value, this.#at(name), 'int');
    return value;
  }

  /** A duration in nanoseconds, or as Go writes it (`1h30m`, `250ms`). */
  duration(name: string, fallback: number): number {
    const value = this.raw(name);
    if (typeof value !== 'string') return this.integer(name, fallback);
    const ns = parseGoDuration(value);
    if (ns === undefined) throw new HttpFailure(400, `time: invalid duration ${JSON.stringify(value)}`);
    return ns;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.raw(name) ?? fallback;
    if (typeof value !== 'boolean') throw wrongType(value, this.#at(name), 'bool');
    return value;
  }

  /** The object under this name; an empty one where there is none. */
  object(name: string): Fields {
    return Fields.of(this.raw(name) ?? {}, this.#at(name));
  }

  list(name: string): unknown[] {
    const value = this.raw(name) ?? [];
    if (!Array.isArray(value)) throw wrongType(value, this.#at(name), 'array');
    return value;
  }

  objects(name: string): Fields[] {
    return this.list(name).map((entry) => Fields.of(entry, this.#at(name)));
  }

  strings(name: string, fallback: readonly string[]): string[] {
    if (!this.has(name)) return [...fallback];
    return this.list(name).map((entry) => {
      if (typeof entry !== 'string') throw wrongType(entry, this.#at(name), 'string');
      return entry;
    });
  }

  /** A map of strings; null where there is none. */
  stringMap(name: string): Record<string, string> | null {
    if (!this.has(name)) return null;
    const fields = this.object(name);
    return Object.fromEntries(Object.keys(fields.#values).map((key) => [key, fields.string(key, '')]));
  }

  /** An object of any values; null where there is none. */
  anyMap(name: string): Record<string, unknown> | null {
    return this.has(name) ? { ...this.object(name).#values } : null;
  }

  /** The named fields as they came, null where they are missing. */
  copy(names: readonly string[]): Record<string, unknown> {
    return Object.fromEntries(names.map((name) => [name, this.raw(name)]));
  }

  #at(name: string): string {
    return `${this.#where}.${name}`;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrongType(value: unknown, where: string, wanted: string): HttpFailure {
  const found = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
  return new HttpFailure(
    400,
    `json: cannot unmarshal ${found} into Go struct field ${where} of type ${wanted}`,
  );
}

const UNITS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

/** Nanoseconds of a duration in Go's spelling, or undefined where it is none. */
export function parseGoDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ns|us|ms|s|m|h))+$/.test(text)) return text === '0' ? 0 : undefined;
  let total = 0;
  for (const [, number, , unit] of text.matchAll(/(\d+(\.\d+)?)(ns|us|ms|s|m|h)/g)) {
    total += Number(number) * (UNITS[unit ?? ''] ?? 0);
  }
  return Math.round(total);
}
