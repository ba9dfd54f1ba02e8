/** What the schema of the configuration is made of: a JSON schema, and what else is to be known of each key. */
export interface KeySchema {
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  /** One or two sentences for the operator. */
  readonly description: string;
  /** Absent where the key has no default, hence may stay undefined. */
  readonly default?: unknown;
  /** Whether a change can take effect while the service runs. */
  readonly reload: 'live' | 'restart';
  /** What is accepted, in words; derived from the limits where those say it all. */
  readonly expected?: string;
  /** Never shown or logged; the value may be `file:PATH`, which takes the contents of that file. */
  readonly secret?: true;
  /** A path: a relative one starts at the configuration file, or at the working directory elsewhere. */
  readonly path?: true;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly items?: { readonly type: 'string'; readonly pattern: string } | ItemSchema;
  readonly propertyNames?: { readonly pattern: string };
  readonly additionalProperties?: { readonly type: 'string' };
}

/** What each object of a list holds. */
export interface ItemSchema {
  readonly type: 'object';
  readonly additionalProperties: false;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, ItemField>>;
}

export interface ItemField {
  readonly type: 'string' | 'array' | 'number' | 'integer';
  readonly expected: string;
  /** As in `KeySchema`. */
  readonly secret?: true;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly uniqueItems?: true;
  readonly items?: { readonly type: 'string'; readonly enum: readonly string[] };
}

export interface SectionSchema {
  readonly type: 'object';
  readonly description: string;
  readonly additionalProperties: false;
  readonly properties: Readonly<Record<string, KeySchema | SectionSchema>>;
}

/** Longest time in seconds that fits a timer of 31 bits of milliseconds. */
export const MAX_SECONDS = 2_147_483;

export const seconds = { type: 'integer', minimum: 1, maximum: MAX_SECONDS } as const;
export const text = { type: 'string', minLength: 1 } as const;
export const file = { ...text, path: true } as const;
export const secret = {
  type: 'string',
  pattern: '^(file:.+|[\\x21-\\x7e]+)$',
  expected: 'printable ASCII without blanks, or file:PATH',
  secret: true,
} as const;

/** A part of the configuration with keys of its own. */
export function section<const P extends SectionSchema['properties']>(description: string, properties: P) {
  return { type: 'object', description, additionalProperties: false, properties } as const;
}
