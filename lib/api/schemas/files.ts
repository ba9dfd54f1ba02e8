import type {
  CopyEntry,
  FileEntry,
  FileListAnswer,
  ListFilesQuery,
  ReadFileQuery,
  UpdateFilesBody,
} from '../../protocol/files.js';
import { answer, integer, list, nullable, object, text, told } from './schema.js';
import { flag, path } from './values.js';

export const copyEntry = object<CopyEntry>(
  {
    path: told(
      path,
      'Where the file goes; a path that ends in `/` is a folder. Relative ones start in the working directory of the image. Missing parents are made.',
      './main.py',
    ),
  },
  {
    content: told(
      { ...nullable(text('a text in base64')), contentEncoding: 'base64' },
      'The bytes of the file in padded base64. Absent, `null` or empty is an empty file. A folder has none.',
      'cHJpbnQoNDIpCg==',
    ),
  },
);

export const updateFilesBody = object<UpdateFilesBody>(
  {},
  {
    delete: told(
      nullable(list(path)),
      'Files and folders to delete, before anything is copied. `./*` or `./` empties the working directory, names with a leading dot included. What is not there is no failure.',
      ['./*'],
    ),
    copy: told(
      nullable(list(copyEntry)),
      'Files and folders to write, as root with mode `rwxr--r--`. Folders get the sticky bit and are writable by all. Of several entries with one path the last wins.',
    ),
  },
);

export const fileEntry = answer<FileEntry>(
  {
    name: told(text('a path'), 'The path, with the prefix that was asked for.', './main.py'),
    entryType: told(
      text('one character', { minLength: 1, maxLength: 1 }),
      'As `ls -l` shows it: `-` a file, `d` a folder, `l` a link, …',
      '-',
    ),
    size: told(integer(0, Number.MAX_SAFE_INTEGER), 'Bytes.', 10),
    modificationTime: told(
      integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
      'Seconds since 1970.',
      1_700_000_000,
    ),
    permissions: told(
      text('nine characters', { pattern: '^[r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-]$' }),
      'As `ls -l` shows them.',
      'rwxr--r--',
    ),
    owner: told(text('a name'), 'The name of the user, or its number.', 'root'),
    group: told(text('a name'), 'The name of the group, or its number.', 'root'),
  },
  {
    linkTarget: told(text('a path'), 'Of links only; empty where it cannot be read.'),
  },
);

export const fileListAnswer = answer<FileListAnswer>({ files: list(fileEntry) }, {});

const privilegedExecution = told(flag, 'Look as root instead of the unprivileged user.', false);

export const listFilesQuery = object<ListFilesQuery>(
  {},
  {
    path: told(path, 'A folder, whose entries are listed, or anything else, which is listed itself.', './'),
    recursive: told(
      flag,
      'Whether the folders inside are listed too; they are unless this is `false`.',
      true,
    ),
    privilegedExecution,
  },
);

export const readFileQuery = object<ReadFileQuery>(
  { path: told(path, 'The file; links are followed.', './main.py') },
  { privilegedExecution },
);
