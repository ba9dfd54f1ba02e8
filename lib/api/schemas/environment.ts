import type { EnvironmentId } from '../../base/ids.js';
import { environmentId } from '../../base/ids.js';
import { ServiceError } from '../../base/errors.js';
import type {
  EnvironmentAnswer,
  EnvironmentBody,
  EnvironmentListAnswer,
  EnvironmentStatistics,
  StatisticsAnswer,
} from '../../protocol/http.js';
import type { Schema } from './schema.js';
import { answer, choice, dictionary, integer, list, nullable, object, text, told } from './schema.js';
import { environmentIdNumber, flag, variables } from './values.js';

/** Beyond this a pool size is a slip of the keyboard. */
const MAX_POOL_SIZE = 10_000;
const MAX_INT32 = 2_147_483_647;
/** Nomad refuses a task with less. */
const MIN_MEMORY_MB = 10;

const ports: Schema<readonly number[]> = {
  ...list(integer(1, 65_535)),
  uniqueItems: true,
  maxItems: 1000,
  expected: 'a list of different ports',
};

const required = {
  image: told(
    text('the name of an image, without blanks', { pattern: '^[^\\s\\u0000]+$', maxLength: 1024 }),
    'The image of its runners.',
    'python:3.12',
  ),
  prewarmingPoolSize: told(integer(0, MAX_POOL_SIZE), 'Idle runners to keep ready.', 5),
  cpuLimit: told(integer(1, MAX_INT32), 'CPU of a runner in MHz, as Nomad counts it.', 100),
  memoryLimit: told(integer(MIN_MEMORY_MB, MAX_INT32), 'Memory of a runner in MB.', 256),
  networkAccess: told(flag, 'Whether programs reach the network.', false),
};

const optional = {
  name: told(
    text('a text of 1 to 100 characters on one line', { pattern: '^[^\\u0000-\\u001f]{1,100}$' }),
    'For people.',
    'Python 3.12',
  ),
  user: told(
    text('the name or number of a user', { pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$' }),
    'The unprivileged user of commands; `runner.user` of the configuration if absent.',
    'user',
  ),
  environment: told(variables, 'Variables that every command gets. `null` means none.'),
};

export const environmentBody = object<EnvironmentBody>(
  {
    ...required,
    exposedPorts: told(
      nullable(ports),
      'Ports on which programs may serve, with network access only. `null` means none.',
      [8080],
    ),
  },
  { id: told(environmentIdNumber, 'May repeat the id of the path.'), ...optional },
);

export const environmentAnswer = answer<EnvironmentAnswer>(
  {
    id: told(environmentIdNumber, 'As in the path.', 10),
    ...required,
    exposedPorts: told(ports, 'Empty without network access.', []),
  },
  optional,
);

export const environmentListAnswer = answer<EnvironmentListAnswer>(
  { executionEnvironments: list(environmentAnswer) },
  {},
);

const count = integer(0, Number.MAX_SAFE_INTEGER);

export const environmentStatistics = answer<EnvironmentStatistics>(
  {
    id: environmentIdNumber,
    prewarmingPoolSize: told(count, 'Idle runners wanted.', 5),
    idleRunners: told(count, 'Ready to be claimed.', 4),
    usedRunners: told(count, 'Claimed.', 2),
    pendingRunners: told(count, 'Being started.', 1),
    failedRunners: told(count, 'Failed since the pool was last full.', 0),
    state: told(choice('ready', 'filling', 'unhealthy'), 'Whether the pool is full, or why it may never be.'),
  },
  {
    reason: told(
      text('a sentence'),
      'Why the pool is not full.',
      'Nomad found no node with room: memory exhausted on 1 node',
    ),
  },
);

export const statisticsAnswer: Schema<StatisticsAnswer> = told(
  dictionary(environmentStatistics),
  'By the id of the environment.',
);

/** `?fetch=true|false`. */
export const fetchQuery = object<{ readonly fetch?: boolean }>(
  {},
  { fetch: told(flag, 'Read the environments from Nomad again first. Changes no pool.', false) },
);

/** The id in a path: decimal digits, as clients print it. */
export function parseEnvironmentId(given: string): EnvironmentId {
  const id = Number(given);
  if (/^(0|[1-9][0-9]*)$/.test(given) && Number.isSafeInteger(id)) return environmentId(id);
  throw new ServiceError('INVALID_REQUEST', 'the id of an environment must be an integer of at least 0');
}
