import type { KeySchema, SectionSchema } from './key-schema.js';
import { CONFIG_SCHEMA } from './schema.js';

/** One key of the configuration, with the names it goes by. */
export interface ConfigKey {
  /** `server.maxBodyBytes`. */
  readonly name: string;
  readonly path: readonly string[];
  /** `SERAI_SERVER_MAX_BODY_BYTES`: every key has its variable by this one rule. */
  readonly variable: string;
  /** The variable of Nomad's own command line that means the same. */
  readonly nomadVariable: string | undefined;
  readonly schema: KeySchema;
}

const NOMAD_VARIABLES: Readonly<Record<string, string>> = {
  'nomad.addresses': 'NOMAD_ADDR',
  'nomad.token': 'NOMAD_TOKEN',
  'nomad.namespace': 'NOMAD_NAMESPACE',
  'nomad.region': 'NOMAD_REGION',
  'nomad.caCert': 'NOMAD_CACERT',
  'nomad.clientCert': 'NOMAD_CLIENT_CERT',
  'nomad.clientKey': 'NOMAD_CLIENT_KEY',
  'nomad.tlsServerName': 'NOMAD_TLS_SERVER_NAME',
  'nomad.skipVerify': 'NOMAD_SKIP_VERIFY',
};

export function isSection(node: KeySchema | SectionSchema): node is SectionSchema {
  return 'properties' in node;
}

function variableOf(path: readonly string[]): string {
  const words = path.map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase());
  return `SERAI_${words.join('_')}`;
}

function keysOf(section: SectionSchema, above: readonly string[]): ConfigKey[] {
  return Object.entries(section.properties).flatMap(([part, node]) => {
    const path = [...above, part];
    if (isSection(node)) return keysOf(node, path);
    const name = path.join('.');
    return [{ name, path, variable: variableOf(path), nomadVariable: NOMAD_VARIABLES[name], schema: node }];
  });
}

/** Every key, in the order of the schema. */
export const CONFIG_KEYS: readonly ConfigKey[] = keysOf(CONFIG_SCHEMA, []);

/** The candidate that is nearest to `given` by letters changed, where one is near enough to be what was meant. */
export function nearest(given: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(given.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best && best.distance <= Math.max(2, given.length / 4) ? best.candidate : undefined;
}

/** Letters to insert, remove, change or swap with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0;
  for (let i = 1; i <= a.length; i += 1) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j += 1) {
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? at(i - 2, j - 2) + 1 : Infinity;
      rows[i]?.push(Math.min(change, swap, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}
