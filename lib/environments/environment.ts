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
