import type { Clock } from '../base/clock.js';
import type { Randomness } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { Cluster } from '../cluster/api.js';
import type { Config } from '../config/config.js';
import type { ExecutionsApi } from '../execution/api.js';
import type { FilesApi } from '../execution/files/api.js';
import type { Runners } from '../runners/api.js';

/** What the API stands on. */
export interface ApiDeps {
  readonly cluster: Cluster;
  readonly runners: Runners;
  readonly executions: ExecutionsApi;
  readonly files: FilesApi;
  readonly config: Pick<Config, 'server' | 'auth' | 'api' | 'pool' | 'cluster'>;
  /** What `GET /version` answers. */
  readonly version: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly randomness: Randomness;
}
