/**
 * JSON schemas (dialect 2020-12) of what crosses the API, each with the type of the values that it describes.
 *
 * One schema serves three readers: ajv, which validates with it; the client whose value was refused, since `expected`
 * completes the sentence "must be …"; and the OpenAPI document, which has it as a component. The type parameter makes a
 * field that the type has and the schema lacks (or has as optional where it is required) a compile error.
 */
declare const describes: unique symbol;

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'boolean';

export interface Schema<T = unknown> {
  readonly type: SchemaType | readonly [SchemaType, 'null'];
  /** What is accepted, in words. */
  readonly expected: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: false | Schema;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly [keyword: string]: unknown;
  /** Never there: ties the schema to its type. */
  readonly [describes]?: T;
}

type RequiredKeys<T> = {
  [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K> ? never : K;
}[keyof T];

type SchemasOf<T, K extends keyof T> = { readonly [P in K]-?: Schema<Required<T>[P]> };

/** An object with these fields and no others. */
export function object<T>(
  required: SchemasOf<T, RequiredKeys<T>>,
  optional: SchemasOf<T, Exclude<keyof T, RequiredKeys<T>>>,
): Schema<T> {
  return { ...fields(required, optional), additionalProperties: false };
}

/** An object of an answer: more fields may come with a later version, and clients are told so. */
export function answer<T>(
  required: SchemasOf<T, RequiredKeys<T>>,
  optional: SchemasOf<T, Exclude<keyof T, RequiredKeys<T>>>,
): Schema<T> {
  return fields(required, optional);
}

function fields(required: Record<never, Schema>, optional: Record<never, Schema>) {
  return {
    type: 'object',
    expected: 'an object',
    properties: { ...required, ...optional },
    required: Object.keys(required),
  } as const;
}

/** An object whose field names are not known beforehand. */
export function dictionary<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return { type: 'object', expected: 'an object', additionalProperties: values };
}

export function list<T>(items: Schema<T>): Schema<readonly T[]> {
  return { type: 'array', items, expected: 'a list' };
}

export function integer(minimum: number, maximum: number): Schema<number> {
  return { type: 'integer', minimum, maximum, expected: `an integer from ${minimum} to ${maximum}` };
}

export function text(expected: string, limits: Readonly<Record<string, unknown>> = {}): Schema<string> {
  return { type: 'string', ...limits, expected };
}

/** One of several texts. */
export function choice<const V extends string>(...values: readonly V[]): Schema<V> {
  return { type: 'string', enum: values, expected: `one of ${values.join(', ')}` };
}

/** `null` beside what the schema takes. */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  const { type, expected } = schema;
  return {
    ...schema,
    type: isAlternative(type) ? type : [type, 'null'],
    expected: `${expected}, or null`,
  };
}

/** The same schema with a sentence, and a value to show, for readers of the document. */
export function told<T>(schema: Schema<T>, description: string, ...examples: readonly T[]): Schema<T> {
  return { ...schema, description, ...(examples.length === 0 ? {} : { examples }) };
}

function isAlternative(type: Schema['type']): type is readonly [SchemaType, 'null'] {
  return typeof type !== 'string';
}
