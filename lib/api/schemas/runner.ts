import type { ClaimBody, ExecuteBody } from '../../protocol/http.js';
import { createQueryValidator } from '../middleware/query.js';
import { createValidator } from '../middleware/validate.js';
import { flag, integer, object, seconds, text, variables } from './values.js';

export const validateClaim = createValidator<ClaimBody>(
  object({ executionEnvironmentId: integer(0, Number.MAX_SAFE_INTEGER), inactivityTimeout: seconds }, [
    'executionEnvironmentId',
  ]),
);

export const validateExecute = createValidator<ExecuteBody>(
  object(
    {
      command: text,
      privilegedExecution: flag,
      environment: variables,
      timeLimit: seconds,
      interactive: flag,
      workingDirectory: {
        type: 'string',
        pattern: '^[^\\u0000]+$',
        maxLength: 4096,
        expected: 'a path',
      },
    },
    ['command'],
  ),
);

export const validateSocketQuery = createQueryValidator<{ readonly executionID: string }>(
  { executionID: { type: 'string', minLength: 1, expected: 'the id of an execution' } },
  ['executionID'],
);

/** For routes without parameters. */
export const validateNoQuery = createQueryValidator<Record<string, never>>({});
