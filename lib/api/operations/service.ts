import { statisticsAnswer } from '../schemas/environment.js';
import { text } from '../schemas/schema.js';
import { defineOperation, json, noQuery } from './operation.js';

export const getHealth = defineOperation({
  id: 'getHealth',
  method: 'GET',
  path: '/health',
  tag: 'Service',
  access: 'everybody',
  summary: 'Tell whether this service may be sent clients',
  description:
    'The only route without a token. It keeps its 503 also with `api.peerStatuses`. Unknown parameters are ignored here, since probes add some.',
  query: noQuery,
  answers: { 204: { description: 'Every pool has enough idle runners, and Nomad answers.' } },
  failures: ['POOL_DEPLETING', 'NOMAD_UNREACHABLE', 'NOT_A_MEMBER', 'NOT_READY'],
});

export const getVersion = defineOperation({
  id: 'getVersion',
  method: 'GET',
  path: '/version',
  tag: 'Service',
  access: 'any-token',
  summary: 'Tell the version of the service',
  query: noQuery,
  answers: { 200: json('The version.', text('a version'), '0.1.0') },
  failures: [],
});

export const getStatistics = defineOperation({
  id: 'getStatistics',
  method: 'GET',
  path: '/statistics/execution-environments',
  tag: 'Service',
  access: 'read',
  summary: 'Count the runners of each environment',
  description: 'What is known at this moment; Nomad is not asked.',
  query: noQuery,
  answers: {
    200: json('The numbers, by id of the environment.', statisticsAnswer, {
      10: {
        id: 10,
        prewarmingPoolSize: 5,
        idleRunners: 4,
        usedRunners: 2,
        pendingRunners: 1,
        failedRunners: 0,
        state: 'filling',
      },
    }),
  },
  failures: ['NOT_READY'],
});

export const getOpenApi = defineOperation({
  id: 'getOpenApi',
  method: 'GET',
  path: '/openapi.json',
  tag: 'Service',
  access: 'any-token',
  summary: 'Describe this API as an OpenAPI document',
  query: noQuery,
  answers: {
    200: json(
      'The document that you read.',
      { type: 'object', expected: 'an OpenAPI document' },
      {
        openapi: '3.1.0',
      },
    ),
  },
  failures: [],
});

export const getDocs = defineOperation({
  id: 'getDocs',
  method: 'GET',
  path: '/docs',
  tag: 'Service',
  access: 'any-token',
  summary: 'Describe this API as a page for people',
  description: '`/docs`, without the base of the API, leads here.',
  query: noQuery,
  answers: {
    200: {
      description: 'A page without scripts and without anything to load.',
      content: { type: 'text/html' },
    },
  },
  failures: [],
});
