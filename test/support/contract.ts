import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { createDocument } from '../../lib/api/openapi/document.js';
import type {
  DocumentSchema,
  HeaderObject,
  OpenApiDocument,
  OperationObject,
  ResponseObject,
} from '../../lib/api/openapi/types.js';
import { API_BASE } from '../../lib/protocol/http.js';

/** An answer that was seen, with the request that it is to. */
export interface SeenAnswer {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where it is not text or was not kept. */
  readonly body: string | undefined;
}

/** Where failures are answered without an operation: an unknown path, another method, a refusal before both. */
const WITHOUT_OPERATION = [400, 401, 403, 404, 405, 429, 500, 503];

/**
 * Holds answers against the OpenAPI document. Objects are closed here although the document leaves them open for later
 * versions: a field that is answered and not described is a fault of today.
 */
export class Contract {
  readonly #document: OpenApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, formats: { uri: true } });
  readonly #validators = new Map<DocumentSchema, ValidateFunction>();

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /** What the document does not allow of an answer, as sentences; none if all is well. */
  faultsOf(seen: SeenAnswer): string[] {
    const operation = this.#operationOf(seen);
    if (!operation) return this.#faultsWithoutOperation(seen);
    const response = operation.responses[String(seen.status)];
    if (!response) return [`${seen.status} is no answer of ${operation.operationId}`];
    return [
      ...headerFaults(response, seen.headers),
      ...(seen.method === 'HEAD' ? bodyOfHead(seen) : this.#bodyFaults(response, seen)),
    ];
  }

  /** Throws unless the document allows the answer. */
  check(seen: SeenAnswer): void {
    const faults = this.faultsOf(seen);
    if (faults.length === 0) return;
    const told = [
      `${seen.method} ${seen.url} was answered with ${seen.status}, against the document:`,
      ...faults,
    ];
    throw new Error([...told, seen.body?.slice(0, 500) ?? ''].join('\n  '));
  }

  #operationOf({ method, url }: SeenAnswer): OperationObject | undefined {
    const { pathname } = new URL(url);
    const item = Object.entries(this.#document.paths).find(([template]) => matches(template, pathname));
    if (!item) return undefined;
    const name = (method === 'HEAD' ? 'GET' : method).toLowerCase();
    return Object.entries(item[1]).find(([each]) => each === name)?.[1];
  }

  #faultsWithoutOperation(seen: SeenAnswer): string[] {
    const { pathname } = new URL(seen.url);
    if (pathname === '/docs' && seen.status === 308) return [];
    if (!WITHOUT_OPERATION.includes(seen.status)) return [`${seen.status} at an unknown path or method`];
    if (seen.method === 'HEAD') return bodyOfHead(seen);
    const name = seen.status >= 500 ? 'FailureWithCode' : 'Failure';
    return this.#schemaFaults({ $ref: `#/components/schemas/${name}` }, seen.body ?? '');
  }

  #bodyFaults({ content, ...response }: ResponseObject, { headers, body }: SeenAnswer): string[] {
    if (!content) return body === '' || body === undefined ? [] : ['a body where there is none'];
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    const media = content[type];
    if (!media) return [`the content type ${type} is not described`];
    if (body === undefined || !media.schema || type !== 'application/json') return [];
    return [...this.#schemaFaults(media.schema, body), ...codeFaults(response, body)];
  }

  #schemaFaults(schema: DocumentSchema, body: string): string[] {
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      return ['the body is no JSON'];
    }
    const validate = this.#validators.get(schema) ?? this.#compile(schema);
    this.#validators.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message = '', params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  #compile(schema: DocumentSchema): ValidateFunction {
    const schemas = Object.entries(this.#document.components.schemas).map(
      ([name, each]) => [name, closed(each)] as const,
    );
    return this.#ajv.compile({ ...closed(schema), components: { schemas: Object.fromEntries(schemas) } });
  }
}

/** The contract of a service with these settings, all others being as they are by default. */
export function contractOf({ peerStatuses = false } = {}): Contract {
  return new Contract(createDocument({ version: '1.2.3', peerStatuses, maxBodyBytes: 2 ** 26 }));
}

function matches(template: string, pathname: string): boolean {
  const wanted = `${API_BASE}${template}`.split('/');
  const given = pathname.replace(/(?<=.)\/$/, '').split('/');
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith('{') ? given[index] !== '' : part === given[index]))
  );
}

function bodyOfHead({ body }: SeenAnswer): string[] {
  return body === '' || body === undefined ? [] : ['a body in an answer to HEAD'];
}

function headerFaults({ headers = {} }: ResponseObject, given: Headers): string[] {
  return Object.entries(headers).flatMap(([name, { required, schema }]) => {
    const value = given.get(name);
    if (value === null) return required ? [`the header ${name} is missing`] : [];
    return isHeaderValue(value, schema) ? [] : [`the header ${name} is ${value}`];
  });
}

function isHeaderValue(value: string, schema: HeaderObject['schema']): boolean {
  if ('const' in schema) return value === String(schema['const']);
  return schema.type !== 'integer' || /^\d+$/.test(value);
}

function codeFaults(response: Omit<ResponseObject, 'content'>, body: string): string[] {
  const codes = response['x-error-codes'];
  if (!codes) return [];
  const { errorCode = '' } = JSON.parse(body) as { errorCode?: string };
  return codes.includes(errorCode) ? [] : [`the errorCode ${errorCode} is not described for this status`];
}

/** A schema whose objects have no other fields than those described. */
function closed(schema: DocumentSchema): DocumentSchema {
  const { properties, items, additionalProperties } = schema;
  const isOpen = properties !== undefined && additionalProperties === undefined;
  return {
    ...schema,
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [name, closed(property)]),
          ),
        }
      : {}),
    ...(items ? { items: closed(items) } : {}),
    ...(isOpen ? { additionalProperties: false } : {}),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: closed(additionalProperties) }
      : {}),
  };
}
