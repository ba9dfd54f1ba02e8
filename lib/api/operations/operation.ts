/**
 * An operation: one method of one path, with all that a client has to know of it.
 *
 * It is the one source of three things: the route (routes/route.ts takes operations and nothing else), the validation of
 * query and body, and the OpenAPI document (openapi/document.ts). A route that is not documented cannot be declared.
 */
import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../../base/errors.js';
import type { Scope } from '../../base/scopes.js';
import { createQueryValidator } from '../middleware/query.js';
import { createValidator } from '../middleware/validate.js';
import type { Schema } from '../schemas/schema.js';
import { object } from '../schemas/schema.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who may call it: everybody, whoever has a token, or a token with this scope. */
export type Access = 'everybody' | 'any-token' | Scope;

export interface OperationSpec<Query> {
  /** Name of the operation in generated clients. */
  readonly id: string;
  readonly method: Method;
  /** Below the base of the API; parameters in braces. */
  readonly path: string;
  readonly tag: Tag;
  readonly access: Access;
  readonly summary: string;
  /** Paragraphs, in the little of Markdown that openapi/page.ts knows. */
  readonly description?: string;
  /** The parameters of the path, by name. */
  readonly parameters?: Readonly<Record<string, Schema>>;
  readonly query: Schema<Query>;
  /** By status. Failures are not among them. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** Errors of this operation, beside those that openapi/failures.ts says every operation of its kind has. */
  readonly failures: readonly ErrorCode[];
  /** It changes or asks Nomad, so it may fail as Nomad does. */
  readonly usesNomad?: true;
  /** It takes as long as files need; all others are answered within seconds. */
  readonly isUnbounded?: true;
}

export type Tag = 'Service' | 'Environments' | 'Runners' | 'Executions' | 'Files';

export interface RequestBody<T> {
  readonly schema: Schema<T>;
  /** By a name that says what it shows. */
  readonly examples: Readonly<Record<string, T>>;
}

/** A successful answer. Without `content` it has no body. */
export interface Answer {
  readonly description: string;
  readonly content?: AnswerContent;
  readonly headers?: Readonly<Record<string, Header>>;
  /** What the client can do next, by operation: its parameters, as runtime expressions. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export type AnswerContent =
  | { readonly type: 'application/json'; readonly schema: Schema; readonly example: unknown }
  | { readonly type: 'application/octet-stream' | 'text/html' };

export interface Header {
  readonly description: string;
  readonly schema: Schema;
  readonly optional?: true;
}

export interface Operation<Query = unknown> extends OperationSpec<Query> {
  readonly body?: RequestBody<unknown>;
  /** INVALID_REQUEST for a query that is not of the schema. */
  parseQuery(req: IncomingMessage): Query;
}

export interface BodyOperation<Query = unknown, Body = unknown> extends Operation<Query> {
  readonly body: RequestBody<Body>;
  /** INVALID_REQUEST for a body that is not of the schema. */
  parseBody(value: unknown): Body;
}

/** For operations without parameters: any is one too many. */
export const noQuery = object<Readonly<Record<never, never>>>({}, {});

/** An operation without a body. */
export function defineOperation<Query>(spec: OperationSpec<Query>): Operation<Query> {
  return { ...spec, parseQuery: createQueryValidator(spec.query) };
}

/** An operation that takes a JSON body. */
export function defineBodyOperation<Query, Body>(
  spec: OperationSpec<Query> & { readonly body: RequestBody<Body> },
): BodyOperation<Query, Body> {
  return {
    ...spec,
    parseQuery: createQueryValidator(spec.query),
    parseBody: createValidator(spec.body.schema),
  };
}

/** A JSON answer. */
export function json<T>(description: string, schema: Schema<T>, example: NoInfer<T>): Answer {
  return { description, content: { type: 'application/json', schema, example } };
}
