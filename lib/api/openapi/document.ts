/**
 * The OpenAPI document of the API, made from the operations that the routes are made from.
 *
 * Nothing about a single route stands here: what an operation takes and answers is in operations/, what its failures mean
 * in failures.ts, and their statuses in the error table.
 */
import { API_BASE } from '../../protocol/http.js';
import { OPERATIONS } from '../operations/all.js';
import type { Access, Operation, Tag } from '../operations/operation.js';
import type { Schema } from '../schemas/schema.js';
import { responsesOf } from './responses.js';
import { componentSchemas, documentSchema } from './schemas.js';
import type {
  HttpMethod,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  PathItem,
  SecurityRequirement,
} from './types.js';

export interface DocumentOptions {
  /** Of the service. */
  readonly version: string;
  /** `api.peerStatuses`: which statuses failures have. */
  readonly peerStatuses: boolean;
  /** `server.maxBodyBytes`. */
  readonly maxBodyBytes: number;
}

const TAGS: Readonly<Record<Tag, string>> = {
  Service: 'The service itself: health, version, numbers, this description.',
  Environments:
    'What runners are made of, and how many are kept ready. They live in Nomad, as template jobs.',
  Runners: 'Claimed by one client, once, and purged when they are returned.',
  Executions: 'Commands in a claimed runner: prepared over HTTP, run over a WebSocket.',
  Files: 'Files of a claimed runner: written, listed, downloaded.',
};

export function createDocument(options: DocumentOptions): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Serai',
      version: options.version,
      summary: 'Warm, isolated runners, and commands in them.',
      description: introduction(options),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: API_BASE, description: 'This service.' }],
    security: securityOf('any-token'),
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: paths(options),
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        token: {
          type: 'apiKey',
          in: 'header',
          name: 'Poseidon-Token',
          description:
            'A token of the configuration. Without any configured, programs of the same machine need none.',
        },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The same token in `Authorization`.',
        },
      },
    },
  };
}

function introduction({ maxBodyBytes, peerStatuses }: DocumentOptions): string {
  return [
    'Compatible with Poseidon API 0.2.2; clients of that work unchanged.',
    'Bodies are JSON in UTF-8, one value and nothing after it. What a body or a query may hold is exactly what is described here: unknown or repeated parameters, unknown fields and other types are answered with 400, and the message names the field. Fields may be added to answers at any time.',
    `A body of more than ${maxBodyBytes} bytes is answered with 413 before it is parsed.`,
    'A failure is answered with a `message`, and from 500 on with an `errorCode`. Where trying again can help there is a `Retry-After`.',
    ...(peerStatuses
      ? ['As `api.peerStatuses` says, 409, 429 and 503 are answered as the 500 that older clients know.']
      : []),
    'HEAD goes with each GET and has its answer without the body. Another method at a known path is answered with 405 and `Allow`, an unknown path with 404, and what is no HTTP with 400, 408 or 431.',
  ].join('\n\n');
}

function paths({ peerStatuses }: DocumentOptions): Record<string, PathItem> {
  const items = new Map<string, Partial<Record<HttpMethod, OperationObject>>>();
  for (const operation of OPERATIONS) {
    const method = operation.method.toLowerCase() as Lowercase<typeof operation.method>;
    const item = items.get(operation.path) ?? {};
    items.set(operation.path, { ...item, [method]: operationObject(operation, peerStatuses) });
  }
  return Object.fromEntries(items);
}

function operationObject(operation: Operation, peerStatuses: boolean): OperationObject {
  const { id, tag, summary, description, access, body } = operation;
  const parameters = [...pathParameters(operation), ...queryParameters(operation.query)];
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: securityOf(access),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: documentSchema(body.schema),
                examples: Object.fromEntries(
                  Object.entries(body.examples).map(([name, value]) => [
                    name.replaceAll(' ', '-'),
                    { value },
                  ]),
                ),
              },
            },
          },
        }
      : {}),
    responses: responsesOf(operation, peerStatuses),
  };
}

function pathParameters({ parameters = {} }: Operation): ParameterObject[] {
  return Object.entries(parameters).map(([name, schema]) => parameter('path', name, schema, true));
}

function queryParameters({ properties = {}, required = [] }: Schema): ParameterObject[] {
  return Object.entries(properties).map(([name, schema]) =>
    parameter('query', name, schema, required.includes(name)),
  );
}

function parameter(
  place: ParameterObject['in'],
  name: string,
  schema: Schema,
  isRequired: boolean,
): ParameterObject {
  const { description = '', ...rest } = documentSchema(schema);
  return { name, in: place, required: isRequired, description, schema: rest };
}

/** The token in either form. */
function securityOf(access: Access): SecurityRequirement[] {
  if (access === 'everybody') return [];
  const scopes = access === 'any-token' ? [] : [access];
  return [{ token: scopes }, { bearer: scopes }];
}
