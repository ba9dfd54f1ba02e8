import {
  environmentAnswer,
  environmentBody,
  environmentListAnswer,
  environmentStatistics,
} from '../schemas/environment.js';
import { failureAnswer, failureWithCodeAnswer } from '../schemas/failure.js';
import { copyEntry, fileEntry, fileListAnswer, updateFilesBody } from '../schemas/files.js';
import { claimAnswer, claimBody, executeAnswer, executeBody } from '../schemas/runner.js';
import type { Schema } from '../schemas/schema.js';
import type { DocumentSchema } from './types.js';

/** The schemas that have a name in the document; wherever one stands inside another, a reference stands instead. */
const NAMED: Readonly<Record<string, Schema>> = {
  EnvironmentBody: environmentBody,
  Environment: environmentAnswer,
  EnvironmentList: environmentListAnswer,
  EnvironmentStatistics: environmentStatistics,
  ClaimBody: claimBody,
  ClaimedRunner: claimAnswer,
  ExecuteBody: executeBody,
  PreparedExecution: executeAnswer,
  UpdateFilesBody: updateFilesBody,
  CopyEntry: copyEntry,
  FileList: fileListAnswer,
  FileEntry: fileEntry,
  Failure: failureAnswer,
  FailureWithCode: failureWithCodeAnswer,
};

const names = new Map(Object.entries(NAMED).map(([name, schema]) => [schema, name]));

/** Keywords whose limits are better said in words too. */
const NEED_WORDS = ['pattern', 'propertyNames', 'uniqueItems', 'contentEncoding'];

export function componentSchemas(): Record<string, DocumentSchema> {
  return Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, written(schema)]));
}

/** A schema as it stands in the document: a reference where it has a name. */
export function documentSchema(schema: Schema): DocumentSchema {
  const name = names.get(schema);
  return name === undefined ? written(schema) : { $ref: `#/components/schemas/${name}` };
}

/** `expected` is ours; what it says goes into the description where no keyword says it as well. */
function written(schema: Schema): DocumentSchema {
  const { expected, description, properties, items, additionalProperties, propertyNames, ...rest } = schema;
  const needsWords = NEED_WORDS.some((keyword) => keyword in schema);
  const words = [
    ...(description === undefined ? [] : [description]),
    ...(needsWords ? [`It is ${expected}.`] : []),
  ];
  return {
    ...rest,
    ...(words.length === 0 ? {} : { description: words.join(' ') }),
    ...(isPattern(propertyNames) ? { propertyNames: { pattern: propertyNames.pattern } } : {}),
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [name, documentSchema(property)]),
          ),
        }
      : {}),
    ...(items ? { items: documentSchema(items) } : {}),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties: additionalProperties === false ? false : documentSchema(additionalProperties),
        }),
  };
}

function isPattern(value: unknown): value is { readonly pattern: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value;
}
