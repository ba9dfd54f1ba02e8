import type { EnvironmentId, RunnerId } from '../base/ids.js';
import type { Replica } from '../cluster/api.js';
import type { Environment } from '../environments/environment.js';
import type { EnvironmentStatistics } from '../protocol/http.js';
import type { ClaimedRunner } from './runner.js';

/** Which of the services on one Nomad serves a runner. */
export type Location = { readonly kind: 'own' } | { readonly kind: 'elsewhere'; readonly owner: Replica };

/**
 * What the API asks of the runners; `RunnerManager` (manager.ts) implements it.
 */
export interface Runners {
  /** True once Nomad was listed for the first time; until then every call rejects with NOT_READY. */
  readonly ready: boolean;
  /** True while Nomad answers; false from the first failed stream or listing until the next good one. */
  readonly nomadReachable: boolean;
  /** ENVIRONMENT_NOT_FOUND, NO_RUNNER_AVAILABLE (with the reason), or a Nomad failure. */
  claim(options: {
    environmentId: EnvironmentId;
    inactivityTimeoutSeconds: number;
    requestSignal?: AbortSignal;
  }): Promise<ClaimedRunner>;
  /** Throws RUNNER_GONE for every id that is not claimed now, unknown ones included. */
  get(id: string): ClaimedRunner;
  /**
   * True where `get` and `return` answer for this id: this service has the runner, or nobody else can. From memory alone;
   * where it is false, `locate` tells who answers.
   */
  owns(id: string): boolean;
  /**
   * Who answers for a runner: this service, or the one to send the request to. A runner whose owner is dead is taken over
   * first, with its inactivity time in full. `own` also for what is gone, so that `get` says so. Asks Nomad only for a runner
   * that is not known to be somebody's. NOMAD_UNREACHABLE, with a hint when to come again, where it cannot be told.
   */
  locate(id: string, signal: AbortSignal): Promise<Location>;
  /** Resolves when Nomad has purged the runner's job. RUNNER_GONE; NOMAD_UNREACHABLE the first time while unconfirmed. */
  return(id: string): Promise<void>;
  /** By environment, in order of id. */
  statistics(): EnvironmentStatistics[];
  environments(): Environment[];
  environment(id: EnvironmentId): Environment;
  /** Reads the template jobs of Nomad again; changes no pool by itself. */
  refreshEnvironments(signal?: AbortSignal): Promise<void>;
  /** Creates or replaces; resolves once Nomad has the template job. */
  putEnvironment(environment: Environment): Promise<'created' | 'replaced' | 'unchanged'>;
  /** Resolves once the template job and all its runners are purged. ENVIRONMENT_NOT_FOUND. */
  deleteEnvironment(id: EnvironmentId): Promise<void>;
  /** Calls back for each runner that leaves its client's hands. Returns the unsubscribe function. */
  onGone(listener: (id: RunnerId) => void): () => void;
}
