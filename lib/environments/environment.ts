import { createHash } from 'node:crypto';
import type { EnvironmentId } from '../base/ids.js';

/**
 * An environment: what a kind of runner is made of. A frozen value; it knows no runner and no pool.
 *
 * Two hashes matter: `specHash` covers everything that makes a runner (all but the pool size). A runner whose hash is
 * another one is of an old specification and is never handed out.
 */
export interface Environment {
  readonly id: EnvironmentId;
  readonly image: string;
  /** Idle runners wanted. */
  readonly prewarmingPoolSize: number;
  /** MHz, as Nomad counts CPU. */
  readonly cpuLimit: number;
  /** MB. */
  readonly memoryLimit: number;
  readonly networkAccess: boolean;
  readonly exposedPorts: readonly number[];
  /** For people and for `run`; absent on environments of other tools. */
  readonly name: string | undefined;
  /** The unprivileged user of commands; undefined takes the configured one. */
  readonly user: string | undefined;
  /** Variables that every command of this environment gets. */
  readonly environment: Readonly<Record<string, string>>;
  readonly specHash: string;
}

/** The fields that a caller chooses; `createEnvironment` adds the hash. */
export type EnvironmentFields = Omit<Environment, 'specHash'>;

/**
 * A frozen environment with its hash. Ports without network access mean nothing, have no place in a job and are
 * dropped, so that a value read back from Nomad is the value that was written.
 */
export function createEnvironment(fields: EnvironmentFields): Environment {
  const exposedPorts = fields.networkAccess ? [...new Set(fields.exposedPorts)] : [];
  const value: EnvironmentFields = {
    id: fields.id,
    image: fields.image,
    prewarmingPoolSize: fields.prewarmingPoolSize,
    cpuLimit: fields.cpuLimit,
    memoryLimit: fields.memoryLimit,
    networkAccess: fields.networkAccess,
    exposedPorts: Object.freeze(exposedPorts),
    name: fields.name,
    user: fields.user,
    environment: Object.freeze({ ...fields.environment }),
  };
  return Object.freeze({ ...value, specHash: hashOf(value) });
}

/** True where a replacement would change nothing: neither the runners nor their number. */
export function isSameEnvironment(a: Environment, b: Environment): boolean {
  return a.specHash === b.specHash && a.prewarmingPoolSize === b.prewarmingPoolSize;
}

/**
 * Hash of everything but the pool size. Written out field by field in one fixed form, so that neither the order of keys
 * or ports nor an added default changes it.
 */
function hashOf(fields: EnvironmentFields): string {
  const variables = Object.entries(fields.environment).sort(([a], [b]) => (a < b ? -1 : 1));
  const canonical = [
    'v1',
    fields.id,
    fields.image,
    fields.cpuLimit,
    fields.memoryLimit,
    fields.networkAccess,
    [...fields.exposedPorts].sort((a, b) => a - b),
    fields.name ?? null,
    fields.user ?? null,
    variables,
  ];
  return createHash('sha256').update(JSON.stringify(canonical)).digest('hex').slice(0, 32);
}
