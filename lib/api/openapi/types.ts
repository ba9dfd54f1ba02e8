/** The part of OpenAPI 3.1 that the document of this API uses. */

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly security: readonly SecurityRequirement[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, DocumentSchema>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
}

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';

export type PathItem = Readonly<Partial<Record<HttpMethod, OperationObject>>>;

export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly SecurityRequirement[];
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: {
    readonly required: true;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export interface ParameterObject {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description: string;
  readonly schema: DocumentSchema;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, HeaderObject>>;
  readonly content?: Readonly<Record<string, MediaType>>;
  readonly links?: Readonly<Record<string, LinkObject>>;
  /** The `errorCode` values that this answer may have. */
  readonly 'x-error-codes'?: readonly string[];
}

export interface HeaderObject {
  readonly description: string;
  readonly required: boolean;
  readonly schema: DocumentSchema;
}

export interface MediaType {
  readonly schema?: DocumentSchema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface LinkObject {
  readonly operationId: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A JSON schema of the dialect 2020-12, or a reference to one of the components. */
export interface DocumentSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, DocumentSchema>>;
  readonly required?: readonly string[];
  readonly items?: DocumentSchema;
  readonly additionalProperties?: false | DocumentSchema;
  readonly [keyword: string]: unknown;
}

/** Names of schemes with the scopes that are needed. */
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

export type SecurityScheme =
  | {
      readonly type: 'apiKey';
      readonly in: 'header';
      readonly name: string;
      readonly description: string;
    }
  | { readonly type: 'http'; readonly scheme: 'bearer'; readonly description: string };
