import type { ErrorCode } from '../../base/errors.js';
import { errorSpec } from '../../base/errors.js';
import { wireForm } from '../middleware/errors.js';
import type { Answer, Operation } from '../operations/operation.js';
import { getHealth } from '../operations/service.js';
import { failureAnswer, failureWithCodeAnswer } from '../schemas/failure.js';
import { integer } from '../schemas/schema.js';
import { FAILURES, failuresOf } from './failures.js';
import { documentSchema } from './schemas.js';
import type { HeaderObject, LinkObject, MediaType, ResponseObject } from './types.js';

/** All answers of an operation by status: those of success as it says, those of failure as the error table has them. */
export function responsesOf(operation: Operation, peerStatuses: boolean): Record<string, ResponseObject> {
  const responses: Record<string, ResponseObject> = {};
  for (const [status, answer] of Object.entries(operation.answers)) responses[status] = success(answer);
  const byStatus = new Map<number, Coded[]>();
  for (const code of failuresOf(operation)) {
    const { status, errorCode } = wireForm(code, operation === getHealth, peerStatuses);
    byStatus.set(status, [...(byStatus.get(status) ?? []), { code, errorCode }]);
  }
  for (const [status, codes] of byStatus) responses[status] = failure(codes);
  responses[HEAD_TOO_LARGE] = {
    description: 'The address and the header fields are longer than the server reads.',
    content: { 'application/json': { schema: documentSchema(failureAnswer) } },
  };
  return responses;
}

/** Answered by the HTTP server itself, before any operation is known. */
const HEAD_TOO_LARGE = 431;

const WWW_AUTHENTICATE: HeaderObject = {
  description: 'Names the scheme `Bearer`.',
  required: true,
  schema: { type: 'string' },
};

interface Coded {
  readonly code: ErrorCode;
  readonly errorCode: string | undefined;
}

function success({ description, content, headers = {}, links = {} }: Answer): ResponseObject {
  const empty: Record<string, HeaderObject> = content
    ? {}
    : {
        'Content-Length': {
          description: 'Always 0.',
          required: false,
          schema: { type: 'integer', const: 0 },
        },
      };
  const named = Object.fromEntries(
    Object.entries(headers).map(([name, header]) => [
      name,
      {
        description: header.description,
        required: header.optional !== true,
        schema: documentSchema(header.schema),
      },
    ]),
  );
  const all = { ...empty, ...named };
  return {
    description,
    ...(Object.keys(all).length === 0 ? {} : { headers: all }),
    ...(content ? { content: { [content.type]: mediaType(content) } } : {}),
    ...(Object.keys(links).length === 0 ? {} : { links: linksOf(links) }),
  };
}

function mediaType(content: NonNullable<Answer['content']>): MediaType {
  if (content.type === 'text/html') return { schema: { type: 'string' } };
  if (content.type !== 'application/json') return {};
  return { schema: documentSchema(content.schema), example: content.example };
}

function linksOf(links: NonNullable<Answer['links']>): Record<string, LinkObject> {
  return Object.fromEntries(
    Object.entries(links).map(([operationId, parameters]) => [operationId, { operationId, parameters }]),
  );
}

function failure(codes: readonly Coded[]): ResponseObject {
  const errorCodes = [...new Set(codes.flatMap(({ errorCode }) => errorCode ?? []))];
  const retryable = codes.filter(({ code }) => errorSpec(code).retryable);
  const schema = errorCodes.length === 0 ? failureAnswer : failureWithCodeAnswer;
  const headers = {
    ...(codes.some(({ code }) => code === 'UNAUTHORIZED') ? { 'WWW-Authenticate': WWW_AUTHENTICATE } : {}),
    ...(retryable.length === 0 ? {} : { 'Retry-After': retryAfter(retryable.length === codes.length) }),
  };
  return {
    description: codes.map(sentence).join('\n'),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: {
      'application/json': {
        schema: documentSchema(schema),
      },
    },
    ...(errorCodes.length === 0 ? {} : { 'x-error-codes': errorCodes }),
  };
}

function sentence({ code, errorCode }: Coded, _index: number, all: readonly Coded[]): string {
  const prefix = all.length > 1 ? '- ' : '';
  return `${prefix}${errorCode === undefined ? '' : `\`${errorCode}\`: `}${FAILURES[code].meaning}`;
}

function retryAfter(always: boolean): HeaderObject {
  return {
    description: `Seconds after which it does well to try again${always ? '' : '; where that can help'}.`,
    required: always,
    schema: documentSchema(integer(1, 2_147_483)),
  };
}
