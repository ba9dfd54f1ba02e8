/**
 * Validation of what clients send: strict, nothing is coerced, and a refusal names the field.
 *
 * Every schema of api/schemas says in `expected` what it takes, in words; that is what the message is made of. Texts
 * that a client sent are never quoted back: they may be secrets.
 */
import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ServiceError } from '../../base/errors.js';
import type { Schema } from '../schemas/schema.js';

/** Throws INVALID_REQUEST, naming the field, unless the value is a `T`. */
export type Validator<T> = (value: unknown) => T;

const ajv = new Ajv2020({ verbose: true, strict: true });
ajv.addVocabulary(['expected']);

/** `subject` is what a refusal calls the value as a whole. */
export function createValidator<T>(schema: Schema<T>, subject = 'the request'): Validator<T> {
  const validate = ajv.compile<T>(schema);
  return (value) => {
    if (validate(value)) return value;
    const [error] = validate.errors ?? [];
    throw new ServiceError('INVALID_REQUEST', error ? describe(error, subject) : `${subject} is not valid`);
  };
}

function describe(error: ErrorObject, subject: string): string {
  const field = fieldOf(error.instancePath);
  switch (error.keyword) {
    case 'additionalProperties':
      return `unknown field ${shortened(String(error.params['additionalProperty']))}${field === '' ? '' : ` in ${field}`}`;
    case 'required':
      return `${field === '' ? '' : `${field}.`}${String(error.params['missingProperty'])} is missing`;
    default: {
      const name = error.propertyName === undefined ? '' : `the name ${shortened(error.propertyName)} in `;
      const expected = expectedOf(error.parentSchema);
      return `${name}${field === '' ? subject : field} must be ${expected}, not ${kindOf(error.data)}`;
    }
  }
}

function expectedOf(schema: unknown): string {
  const isSaid = typeof schema === 'object' && schema !== null && 'expected' in schema;
  return isSaid ? String(schema.expected) : 'of another form';
}

/** `/exposedPorts/0` → `exposedPorts[0]`. */
function fieldOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part, index) =>
      /^\d+$/.test(part) ? `[${part}]` : `${index === 0 ? '' : '.'}${part.slice(0, 60)}`,
    )
    .join('');
}

function shortened(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'this list';
  switch (typeof value) {
    case 'number':
    case 'boolean':
      return String(value);
    case 'string':
      return 'this text';
    default:
      return 'an object';
  }
}
