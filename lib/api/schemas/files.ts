import type { UpdateFilesBody } from '../../protocol/files.js';
import { createQueryValidator } from '../middleware/query.js';
import type { Schema } from '../middleware/validate.js';
import { createValidator } from '../middleware/validate.js';
import { object } from './values.js';

const path: Schema = { type: 'string', pattern: '^[^\\u0000]+$', maxLength: 4095, expected: 'a path' };

const queryFlag: Schema = { type: 'string', enum: ['true', 'false'], expected: 'true or false' };

function list(items: Schema): Schema {
  return { type: 'array', nullable: true, items, expected: 'a list, or null' };
}

export const validateUpdateFiles = createValidator<UpdateFilesBody>(
  object(
    {
      delete: list(path),
      copy: list(
        object({ path, content: { type: 'string', nullable: true, expected: 'a text in base64' } }, ['path']),
      ),
    },
    [],
  ),
);

export interface ListFilesQuery {
  readonly path?: string;
  readonly recursive?: 'true' | 'false';
  readonly privilegedExecution?: 'true' | 'false';
}

export const validateListFiles = createQueryValidator<ListFilesQuery>({
  path,
  recursive: queryFlag,
  privilegedExecution: queryFlag,
});

export interface ReadFileQuery {
  readonly path: string;
  readonly privilegedExecution?: 'true' | 'false';
}

export const validateReadFile = createQueryValidator<ReadFileQuery>(
  { path, privilegedExecution: queryFlag },
  ['path'],
);
