import type { EnvironmentDefinition } from '../environments/definitions.js';
import type { Environment } from '../environments/environment.js';
import type { EnvironmentBody } from '../protocol/http.js';
import type { ApiClient } from './api-client.js';
import type { Talk } from './talk.js';
import type { ToolLookup } from './tools.js';
import { missingTools } from './tools.js';

export interface RegistrationOptions {
  readonly api: Pick<ApiClient, 'environments' | 'putEnvironment'>;
  readonly definitions: readonly EnvironmentDefinition[];
  /** Idle runners of each environment; undefined keeps what the definitions say. */
  readonly poolSize: number | undefined;
  /** Where tasks use the programs of this machine; undefined where images bring their own. */
  readonly tools: ToolLookup | undefined;
  readonly talk: Talk;
}

/**
 * Registers the environments that the machine can run, and says which it cannot. One that exists already under its id
 * belongs to whoever made it and is left as it is, but for a pool size that is asked for.
 *
 * Resolves with the definitions whose environment is there now as they define it.
 */
export async function registerEnvironments(options: RegistrationOptions): Promise<EnvironmentDefinition[]> {
  const { api, definitions, poolSize, tools, talk } = options;
  const existing = new Map((await api.environments()).map((each) => [each.id, each]));
  const usable: EnvironmentDefinition[] = [];
  for (const definition of definitions) {
    const { environment, requires } = definition;
    const label = `${environment.id} ${environment.name ?? environment.image}`;
    const known = existing.get(environment.id);
    if (known && known.image !== environment.image) {
      talk.say('kept', `${label}: the id is taken by ${known.name ?? known.image}`);
      continue;
    }
    const missing = tools ? await missingTools(requires, tools) : [];
    if (missing.length > 0) {
      talk.say('skipped', `${label}: this machine has no ${missing.join(' and no ')}`);
      continue;
    }
    if (!known || poolSize !== undefined) {
      const size = poolSize ?? environment.prewarmingPoolSize;
      await api.putEnvironment(environment.id, bodyOf(environment, size));
    }
    talk.say(known ? 'kept' : 'added', label);
    usable.push(definition);
  }
  return usable;
}

function bodyOf(environment: Environment, prewarmingPoolSize: number): EnvironmentBody {
  const { image, cpuLimit, memoryLimit, networkAccess, exposedPorts, name, user } = environment;
  return {
    image,
    prewarmingPoolSize,
    cpuLimit,
    memoryLimit,
    networkAccess,
    exposedPorts,
    environment: environment.environment,
    ...(name === undefined ? {} : { name }),
    ...(user === undefined ? {} : { user }),
  };
}
