import type { EnvironmentId } from '../../base/ids.js';
import { environmentId } from '../../base/ids.js';
import { ServiceError } from '../../base/errors.js';
import type { EnvironmentBody } from '../../protocol/http.js';
import { createQueryValidator } from '../middleware/query.js';
import { createValidator } from '../middleware/validate.js';
import { flag, integer, object, variables } from './values.js';

/** Beyond this a pool size is a slip of the keyboard. */
const MAX_POOL_SIZE = 100_000;
const MAX_INT32 = 2_147_483_647;
/** Nomad refuses a task with less. */
const MIN_MEMORY_MB = 10;

export const validateEnvironment = createValidator<EnvironmentBody>(
  object(
    {
      id: integer(0, Number.MAX_SAFE_INTEGER),
      image: {
        type: 'string',
        pattern: '^[^\\s\\u0000]+$',
        maxLength: 1024,
        expected: 'the name of an image, without blanks',
      },
      prewarmingPoolSize: integer(0, MAX_POOL_SIZE),
      cpuLimit: integer(1, MAX_INT32),
      memoryLimit: integer(MIN_MEMORY_MB, MAX_INT32),
      networkAccess: flag,
      exposedPorts: {
        type: 'array',
        nullable: true,
        items: integer(1, 65_535),
        uniqueItems: true,
        maxItems: 1000,
        expected: 'a list of different ports, or null',
      },
      name: {
        type: 'string',
        pattern: '^[^\\u0000-\\u001f]{1,100}$',
        expected: 'a text of 1 to 100 characters on one line',
      },
      user: {
        type: 'string',
        pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$',
        expected: 'the name or number of a user',
      },
      environment: variables,
    },
    ['image', 'prewarmingPoolSize', 'cpuLimit', 'memoryLimit', 'networkAccess', 'exposedPorts'],
  ),
);

/** `?fetch=true|false`. */
export const validateFetch = createQueryValidator<{ readonly fetch?: 'true' | 'false' }>({
  fetch: { type: 'string', enum: ['true', 'false'], expected: 'true or false' },
});

/** The id in a path: decimal digits, as clients print it. */
export function parseEnvironmentId(text: string): EnvironmentId {
  const id = Number(text);
  if (/^(0|[1-9][0-9]*)$/.test(text) && Number.isSafeInteger(id)) return environmentId(id);
  throw new ServiceError('INVALID_REQUEST', 'the id of an environment must be an integer of at least 0');
}
