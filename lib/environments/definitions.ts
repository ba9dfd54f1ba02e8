/**
 * Environment definitions: YAML files that say which environments `npm start` registers, what each needs of the machine
 * when there is no container image to bring it, and a sample program to try it with.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JSONSchemaType } from 'ajv';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { ServiceError, messageOf } from '../base/errors.js';
import { environmentId } from '../base/ids.js';
import type { Environment } from './environment.js';
import { createEnvironment } from './environment.js';

export interface EnvironmentDefinition {
  readonly environment: Environment;
  /** A program to show that the environment runs, as a single command. */
  readonly sample: { readonly command: string; readonly expect: string };
  /** Tools that must be on the machine where tasks run on the machine's own file system, not in an image. */
  readonly requires: readonly string[];
  /** The file it came from. */
  readonly file: string;
}

/** The folder that ships with the package. */
export const packagedDefinitions = fileURLToPath(new URL('../../templates/environments', import.meta.url));

interface DefinitionFile {
  id: number;
  name: string;
  image: string;
  prewarmingPoolSize: number;
  cpuLimit: number;
  memoryLimit: number;
  networkAccess: boolean;
  exposedPorts: number[];
  user?: string;
  environment?: Record<string, string>;
  sample: { command: string; expect: string };
  requires: string[];
}

const text = { type: 'string', minLength: 1 } as const;

const schema: JSONSchemaType<DefinitionFile> = {
  type: 'object',
  additionalProperties: false,
  required: [
    'id',
    'name',
    'image',
    'prewarmingPoolSize',
    'cpuLimit',
    'memoryLimit',
    'networkAccess',
    'exposedPorts',
    'sample',
    'requires',
  ],
  properties: {
    id: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    name: text,
    image: text,
    prewarmingPoolSize: { type: 'integer', minimum: 0, maximum: 10_000 },
    cpuLimit: { type: 'integer', minimum: 1 },
    memoryLimit: { type: 'integer', minimum: 10 },
    networkAccess: { type: 'boolean' },
    exposedPorts: {
      type: 'array',
      uniqueItems: true,
      items: { type: 'integer', minimum: 1, maximum: 65_535 },
    },
    user: { ...text, nullable: true },
    environment: {
      type: 'object',
      nullable: true,
      required: [],
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
      additionalProperties: { type: 'string' },
    },
    sample: {
      type: 'object',
      additionalProperties: false,
      required: ['command', 'expect'],
      properties: { command: text, expect: { type: 'string' } },
    },
    requires: { type: 'array', items: text },
  },
};

const validate = new Ajv({ allErrors: true }).compile(schema);

/**
 * Reads every `*.yaml` of a folder, in order of id. Rejects with INVALID_CONFIG, naming the file and each fault, also
 * where two files have the same id.
 */
export async function loadDefinitions(folder: string): Promise<EnvironmentDefinition[]> {
  let names: string[];
  try {
    names = (await readdir(folder)).filter((name) => /\.ya?ml$/.test(name)).sort();
  } catch (error) {
    throw invalid(folder, messageOf(error), error);
  }
  const definitions = await Promise.all(
    names.map(async (name) => {
      const file = path.join(folder, name);
      return parseDefinition(file, await readFile(file, 'utf8'));
    }),
  );
  definitions.sort((a, b) => a.environment.id - b.environment.id);
  for (const [index, definition] of definitions.entries()) {
    const next = definitions[index + 1];
    if (next?.environment.id === definition.environment.id) {
      throw invalid(next.file, `id ${next.environment.id} is that of ${definition.file} too`);
    }
  }
  return definitions;
}

/** Reads one definition; `file` names it in errors. */
export function parseDefinition(file: string, yaml: string): EnvironmentDefinition {
  let document: unknown;
  try {
    document = parse(yaml);
  } catch (error) {
    throw invalid(file, messageOf(error), error);
  }
  if (!validate(document)) {
    const faults = (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${instancePath || 'the document'} ${message ?? 'is wrong'}${'additionalProperty' in params ? ` (${String(params.additionalProperty)})` : ''}`,
    );
    throw invalid(file, faults.join('; '));
  }
  const { sample, requires, id, user, environment, ...fields } = document;
  return {
    environment: createEnvironment({
      ...fields,
      id: environmentId(id),
      user: user ?? undefined,
      environment: environment ?? {},
    }),
    sample,
    requires,
    file,
  };
}

function invalid(file: string, what: string, cause?: unknown): ServiceError {
  return new ServiceError('INVALID_CONFIG', `the environment definition ${file}: ${what}`, { cause });
}
