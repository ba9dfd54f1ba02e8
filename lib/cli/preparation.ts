/**
 * Makes a running service useful, through its public API: environments, full pools, a sample program.
 */
import type { Clock } from '../base/clock.js';
import type { Config } from '../config/config.js';
import { loadDefinitions, packagedDefinitions } from '../environments/definitions.js';
import type { ApiClient } from './api-client.js';
import { ApiRefusal } from './api-client.js';
import { clientOfOwnService } from './own-service.js';
import { waitForPools } from './pool-progress.js';
import { registerEnvironments } from './registration.js';
import { runSample } from './sample.js';
import type { Talk } from './talk.js';
import type { ToolLookup } from './tools.js';

export interface PreparationOptions {
  readonly url: string;
  readonly config: Config;
  /** Idle runners of each environment; undefined keeps what the definitions say. */
  readonly poolSize: number | undefined;
  /** Where tasks use the programs of this machine; undefined where images bring their own. */
  readonly tools: ToolLookup | undefined;
  /** False where tasks are simulated: there is no program to try. */
  readonly runsPrograms: boolean;
  readonly clock: Clock;
  readonly talk: Talk;
  readonly signal: AbortSignal;
}

const POLL_MS = 100;
/** Nomad is usually read before anybody could wonder. */
const PATIENCE_MS = 1000;

/** Resolves with whether the sample program of the first environment, where one can run, did what it has to. */
export async function prepareService(options: PreparationOptions): Promise<boolean> {
  const { url, config, poolSize, tools, runsPrograms, clock, talk, signal } = options;
  talk.say('service', url);
  const api = await clientOfOwnService(url, config);
  if (!(await isReady(api, options))) return false;
  const definitions = await loadDefinitions(config.templates.environments ?? packagedDefinitions);
  const usable = await registerEnvironments({ api, definitions, poolSize, tools, talk });
  const [sample] = usable;
  if (!sample) {
    talk.say('failed', 'there is no environment that can be run here');
    return false;
  }
  const ids = new Set(usable.map(({ environment }) => environment.id));
  const isFull = await waitForPools({ api, ids, clock, talk, signal });
  if (signal.aborted) return false;
  if (runsPrograms) return runSample(api, sample, talk);
  talk.say('sample', 'none, since simulated runners run no programs');
  return isFull;
}

/** Waits until the service has read Nomad; false where it is told to stop before. */
async function isReady(
  api: ApiClient,
  { config, clock, talk, signal }: PreparationOptions,
): Promise<boolean> {
  const startedMs = clock.monotonicMs();
  while (!signal.aborted) {
    try {
      await api.environments();
      return true;
    } catch (error) {
      if (!(error instanceof ApiRefusal && error.errorCode === 'NOMAD_UNREACHABLE')) throw error;
      if (clock.monotonicMs() - startedMs > PATIENCE_MS) {
        talk.progress('nomad', `waiting for ${config.nomad.addresses.join(', ')}`);
      }
      await clock.sleep(POLL_MS, signal);
    }
  }
  return false;
}
