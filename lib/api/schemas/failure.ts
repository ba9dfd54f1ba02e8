import type { ErrorAnswer } from '../../protocol/http.js';
import { answer, choice, text, told } from './schema.js';

const message = told(
  text('a sentence'),
  'What failed, on which id, and what can be done. For people; only the words that docs/api.md names are kept.',
  'executionEnvironmentId must be an integer from 0 to 9007199254740991, not 1.5',
);

/** A failure that is the client's to mend. */
export const failureAnswer = answer<Pick<ErrorAnswer, 'message'>>({ message }, {});

/** A failure on the side of the service, with the code that clients tell it by. */
export const failureWithCodeAnswer = answer<Required<ErrorAnswer>>(
  {
    message,
    errorCode: told(
      choice(
        'NOMAD_UNREACHABLE',
        'NOMAD_OVERLOAD',
        'NOMAD_INTERNAL_SERVER_ERROR',
        'PREWARMING_POOL_DEPLETING',
        'UNKNOWN',
      ),
      'The kind of failure.',
      'NOMAD_OVERLOAD',
    ),
  },
  {},
);
