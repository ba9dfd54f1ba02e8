/**
 * Makes the configuration: file, then environment variables, then flags, each over the one before, on the defaults.
 *
 * Every source is validated by itself, also where a later one wins, and all faults are reported in one INVALID_CONFIG
 * error. Only here and in the two files beside (sources.ts, secrets.ts) files and the environment are read.
 */
import path from 'node:path';
import { Ajv } from 'ajv';
import type { Config } from './config.js';
import { crossFaults, crossWarnings } from './cross-faults.js';
import type { ConfigFault } from './faults.js';
import { configError, faultsOf } from './faults.js';
import type { ConfigKey } from './keys.js';
import { CONFIG_KEYS } from './keys.js';
import { CONFIG_SCHEMA } from './schema.js';
import { readSecrets } from './secrets.js';
import type { FlagValue, Layer } from './sources.js';
import { environmentLayer, fileLayer, flagLayer, valueAt } from './sources.js';

export interface ConfigSources {
  /** Path from `--config`; else that of SERAI_CONFIG is read, else no file. */
  readonly file?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly flags?: readonly FlagValue[];
  /** What a command sets where no source does; below all of them, over the defaults. */
  readonly presets?: readonly FlagValue[];
  /** Where relative paths of variables and flags start. */
  readonly cwd: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Names of the keys that some source gave, such as `nomad.addresses`. */
  readonly given: ReadonlySet<string>;
  /** Sentences for the operator about what was ignored. */
  readonly warnings: readonly string[];
}

const ajv = new Ajv({ allErrors: true, allowUnionTypes: false });
ajv.addVocabulary(['reload', 'secret', 'path', 'expected']);
const validate = ajv.compile(CONFIG_SCHEMA);

/** Throws INVALID_CONFIG with every fault. The result is frozen through and through. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const { env, cwd, flags = [], presets = [] } = sources;
  const faults: ConfigFault[] = [];
  const warnings: string[] = [];
  const file = sources.file ?? (env['SERAI_CONFIG'] || undefined);
  const layers = [
    flagLayer(flags, cwd, faults),
    environmentLayer(env, cwd, warnings),
    ...(file === undefined ? [] : [fileLayer(path.resolve(cwd, file), faults)]),
  ];
  const preset = flagLayer(presets, cwd, faults);
  for (const layer of layers) {
    if (!validate(layer.values)) faults.push(...faultsOf(validate.errors ?? [], layer));
  }
  if (faults.length > 0) throw configError(faults);

  const given = new Set<string>();
  const chosen = new Map<string, unknown>();
  for (const key of CONFIG_KEYS) {
    const layer = layers.find((each) => valueAt(each.values, key) !== undefined);
    if (layer) given.add(key.name);
    const value = layer ? resolved(key, layer, faults) : valueAt(preset.values, key);
    chosen.set(key.name, value ?? key.schema.default);
  }
  if (faults.length > 0) throw configError(faults);
  const config = deepFreeze(assemble(chosen));
  const crossed = crossFaults(config);
  if (crossed.length > 0) throw configError(crossed);
  return { config, given, warnings: [...warnings, ...crossWarnings(config)] };
}

/** The value with its `file:` references read and its relative path resolved. */
function resolved(key: ConfigKey, layer: Layer, faults: ConfigFault[]): unknown {
  const value = valueAt(layer.values, key);
  if (key.schema.secret) return readSecrets(key, layer, faults);
  return key.schema.path && typeof value === 'string' ? path.resolve(layer.folder, value) : value;
}

/** Builds the nested object; the schema and `Config` have the same keys, which the compiler checks in schema.ts. */
function assemble(chosen: ReadonlyMap<string, unknown>): Config {
  const build = (properties: typeof CONFIG_SCHEMA.properties | object, above: string): object =>
    Object.fromEntries(
      Object.entries(properties).map(([part, node]: [string, object]) => {
        const name = above === '' ? part : `${above}.${part}`;
        return [part, 'properties' in node ? build(node.properties as object, name) : chosen.get(name)];
      }),
    );
  return build(CONFIG_SCHEMA.properties, '') as Config;
}

function deepFreeze<T extends object>(value: T): T {
  for (const below of Object.values(value)) {
    if (typeof below === 'object' && below !== null) deepFreeze(below);
  }
  return Object.freeze(value);
}
