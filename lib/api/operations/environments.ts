import type { EnvironmentAnswer, EnvironmentBody } from '../../protocol/http.js';
import {
  environmentAnswer,
  environmentBody,
  environmentListAnswer,
  fetchQuery,
} from '../schemas/environment.js';
import { told } from '../schemas/schema.js';
import { environmentIdNumber } from '../schemas/values.js';
import { defineBodyOperation, defineOperation, json, noQuery } from './operation.js';

const id = told(environmentIdNumber, 'The number of the environment, as its creator chose it.', 10);

const PYTHON: EnvironmentBody = {
  image: 'python:3.12',
  prewarmingPoolSize: 5,
  cpuLimit: 100,
  memoryLimit: 256,
  networkAccess: false,
  exposedPorts: null,
};

const PYTHON_ANSWER: EnvironmentAnswer = { ...PYTHON, id: 10, exposedPorts: [], name: 'Python 3.12' };

const SERVER: EnvironmentBody = {
  image: 'registry.example/web:7',
  prewarmingPoolSize: 2,
  cpuLimit: 200,
  memoryLimit: 512,
  networkAccess: true,
  exposedPorts: [8080],
  name: 'Web server',
  user: 'web',
  environment: { LANG: 'C.UTF-8' },
};

export const listEnvironments = defineOperation({
  id: 'listEnvironments',
  method: 'GET',
  path: '/execution-environments',
  tag: 'Environments',
  access: 'environments',
  summary: 'List the environments',
  query: fetchQuery,
  answers: {
    200: json('All environments.', environmentListAnswer, { executionEnvironments: [PYTHON_ANSWER] }),
  },
  failures: ['NOT_READY'],
  usesNomad: true,
});

export const getEnvironment = defineOperation({
  id: 'getEnvironment',
  method: 'GET',
  path: '/execution-environments/{id}',
  tag: 'Environments',
  access: 'environments',
  summary: 'Show an environment',
  parameters: { id },
  query: fetchQuery,
  answers: { 200: json('The environment.', environmentAnswer, PYTHON_ANSWER) },
  failures: ['ENVIRONMENT_NOT_FOUND', 'NOT_READY'],
  usesNomad: true,
});

export const putEnvironment = defineBodyOperation({
  id: 'putEnvironment',
  method: 'PUT',
  path: '/execution-environments/{id}',
  tag: 'Environments',
  access: 'environments',
  summary: 'Create or replace an environment',
  description: [
    'The same body again changes nothing: idle runners stay.',
    'After a changed one no runner of the old specification is handed out any more. The new pool is filled first where there is room, then the old idle runners go; used ones stay until they are returned.',
  ].join('\n\n'),
  parameters: { id },
  query: noQuery,
  body: { schema: environmentBody, examples: { plain: PYTHON, 'with network': SERVER } },
  answers: {
    201: { description: 'It was created.', links: { getEnvironment: { id: '$request.path.id' } } },
    204: { description: 'It was replaced, or was as given already.' },
  },
  failures: ['NOT_READY'],
  usesNomad: true,
});

export const deleteEnvironment = defineOperation({
  id: 'deleteEnvironment',
  method: 'DELETE',
  path: '/execution-environments/{id}',
  tag: 'Environments',
  access: 'environments',
  summary: 'Delete an environment with all its runners',
  parameters: { id },
  query: noQuery,
  answers: { 204: { description: 'Its template job and all its runners are gone, those in use too.' } },
  failures: ['ENVIRONMENT_NOT_FOUND', 'NOT_READY'],
  usesNomad: true,
});
