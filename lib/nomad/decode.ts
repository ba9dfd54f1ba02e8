import { protocolError } from './errors.js';

/**
 * Reads one JSON object of Nomad field by field. What is missing or of another type becomes NOMAD_PROTOCOL, named by
 * its place in the answer; nothing of the value goes into the error.
 *
 * Go leaves zero values out of many answers, so readers that end in `OrZero` and the like take absence for zero.
 */
export class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #where: string;

  /** `where` names the object in errors, for example `allocation`. */
  constructor(value: unknown, where: string) {
    if (!isRecord(value)) throw protocolError(`${where} is no object`);
    this.#fields = value;
    this.#where = where;
  }

  raw(name: string): unknown {
    return this.#fields[name];
  }

  text(name: string): string {
    const value = this.#fields[name];
    return typeof value === 'string' ? value : this.#fail(name, 'a text');
  }

  /** The text, or '' where it is missing or null. */
  textOrEmpty(name: string): string {
    return this.#absent(name) ? '' : this.text(name);
  }

  /** The text, or undefined where it is missing, null or empty. */
  textIfAny(name: string): string | undefined {
    return this.textOrEmpty(name) || undefined;
  }

  number(name: string): number {
    const value = this.#fields[name];
    return typeof value === 'number' ? value : this.#fail(name, 'a number');
  }

  numberOrZero(name: string): number {
    return this.#absent(name) ? 0 : this.number(name);
  }

  flagOrFalse(name: string): boolean {
    if (this.#absent(name)) return false;
    const value = this.#fields[name];
    return typeof value === 'boolean' ? value : this.#fail(name, 'true or false');
  }

  /** The object of this name, or undefined where it is missing or null. */
  child(name: string): Fields | undefined {
    return this.#absent(name) ? undefined : new Fields(this.#fields[name], this.#place(name));
  }

  /** The objects of a list; empty where it is missing or null. */
  list(name: string): Fields[] {
    if (this.#absent(name)) return [];
    const value = this.#fields[name];
    if (!Array.isArray(value)) return this.#fail(name, 'a list');
    return value.map((item: unknown, index) => new Fields(item, `${this.#place(name)}[${index}]`));
  }

  /** A map of objects; undefined where it is missing or null. */
  children(name: string): [string, Fields][] | undefined {
    if (this.#absent(name)) return undefined;
    const map = this.#fields[name];
    if (!isRecord(map)) return this.#fail(name, 'a map');
    return Object.entries(map).map(([key, value]) => [key, new Fields(value, `${this.#place(name)}.${key}`)]);
  }

  /** A map of texts; undefined where it is missing or null. */
  texts(name: string): Record<string, string> | undefined {
    if (this.#absent(name)) return undefined;
    const value = this.#fields[name];
    return isTextMap(value) ? value : this.#fail(name, 'a map of texts');
  }

  /** A map of numbers; empty where it is missing or null. */
  numbers(name: string): Record<string, number> {
    if (this.#absent(name)) return {};
    const value = this.#fields[name];
    return isNumberMap(value) ? value : this.#fail(name, 'a map of numbers');
  }

  #absent(name: string): boolean {
    const value = this.#fields[name];
    return value === undefined || value === null;
  }

  #place(name: string): string {
    return `${this.#where}.${name}`;
  }

  #fail(name: string, expected: string): never {
    throw protocolError(`${this.#place(name)} is not ${expected}`);
  }
}

/** Applies `decode` to each item of a list answer. */
export function decodeList<T>(value: unknown, where: string, decode: (item: unknown) => T): T[] {
  if (!Array.isArray(value)) throw protocolError(`${where} is no list`);
  return value.map((item: unknown) => decode(item));
}

/** The value of a Nomad enumeration as one of ours; what a newer Nomad may invent becomes `otherwise`. */
export function oneOf<T extends string>(value: string, known: readonly T[], otherwise: T): T {
  return known.find((each) => each === value) ?? otherwise;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isTextMap(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((each) => typeof each === 'string');
}

function isNumberMap(value: unknown): value is Record<string, number> {
  return isRecord(value) && Object.values(value).every((each) => typeof each === 'number');
}
