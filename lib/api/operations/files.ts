import { fileListAnswer, listFilesQuery, readFileQuery, updateFilesBody } from '../schemas/files.js';
import { integer, text, told } from '../schemas/schema.js';
import { defineBodyOperation, defineOperation, json, noQuery } from './operation.js';
import { runnerIdParameter } from './runners.js';

const id = runnerIdParameter;

export const updateFiles = defineBodyOperation({
  id: 'updateFiles',
  method: 'PATCH',
  path: '/runners/{id}/files',
  tag: 'Files',
  access: 'runners',
  summary: 'Delete and write files',
  description: [
    'Deletes first, then writes, as root. Nothing is written or deleted through a link that a program planted.',
    'A path that cannot be written is named in the answer’s message, in the words of tar, a line each (`tar: d/x: Cannot open: Permission denied`); the others are written all the same. A file is there whole or not at all.',
    'Bodies are streamed through to the runner; only what is not contents of files has to fit in memory.',
  ].join('\n\n'),
  parameters: { id },
  query: noQuery,
  body: {
    schema: updateFilesBody,
    examples: {
      'a clean start': { delete: ['./*'], copy: [{ path: './main.py', content: 'cHJpbnQoNDIpCg==' }] },
      'files that programs cannot change': {
        copy: [{ path: 'tests/' }, { path: 'tests/test.py', content: 'YXNzZXJ0IFRydWUK' }],
      },
    },
  },
  answers: { 204: { description: 'All is deleted and written.' } },
  failures: [
    'RUNNER_GONE',
    'FILE_TOO_LARGE',
    'UPLOADS_FULL',
    'FILES_NOT_WRITTEN',
    'EXECUTION_FAILED',
    'NOT_READY',
  ],
  usesNomad: true,
  isUnbounded: true,
});

export const listFiles = defineOperation({
  id: 'listFiles',
  method: 'GET',
  path: '/runners/{id}/files',
  tag: 'Files',
  access: 'runners',
  summary: 'List files',
  description:
    'The answer is streamed. A path that is a link lists the link itself. Folders further down that are closed to the user are listed without their entries.',
  parameters: { id },
  query: listFilesQuery,
  answers: {
    200: json('The entries, in no order.', fileListAnswer, {
      files: [
        {
          name: './main.py',
          entryType: '-',
          size: 10,
          modificationTime: 1_700_000_000,
          permissions: 'rwxr--r--',
          owner: 'root',
          group: 'root',
        },
        {
          name: './latest',
          entryType: 'l',
          size: 7,
          modificationTime: 1_700_000_000,
          permissions: 'rwxrwxrwx',
          owner: 'user',
          group: 'user',
          linkTarget: 'main.py',
        },
      ],
    }),
  },
  failures: ['RUNNER_GONE', 'FILE_UNREADABLE', 'EXECUTION_FAILED', 'NOT_READY'],
  usesNomad: true,
  isUnbounded: true,
});

export const readFile = defineOperation({
  id: 'readFile',
  method: 'GET',
  path: '/runners/{id}/files/raw',
  tag: 'Files',
  access: 'runners',
  summary: 'Download a file',
  parameters: { id },
  query: readFileQuery,
  answers: {
    200: {
      description: 'The exact bytes.',
      content: { type: 'application/octet-stream' },
      headers: {
        'Content-Disposition': {
          description: 'The name of the file, plain and, where that is not exact, as RFC 6266 has it.',
          schema: told(text('a disposition'), 'As a browser takes it.', 'attachment; filename="main.py"'),
        },
        'Content-Length': {
          description: 'The true length. Absent where it is not known beforehand, as with files of `/proc`.',
          schema: integer(0, Number.MAX_SAFE_INTEGER),
          optional: true,
        },
      },
    },
  },
  failures: ['RUNNER_GONE', 'FILE_UNREADABLE', 'EXECUTION_FAILED', 'NOT_READY'],
  usesNomad: true,
  isUnbounded: true,
});
