import type { Config } from './config.js';
import { SCOPES } from '../base/scopes.js';

/**
 * The one schema of the configuration: what every key may hold, its default, and what it is for. `load.ts` validates
 * each source with it, and docs/configuration.md is written from it (document.ts).
 *
 * The type `SectionFor<Config>` makes a key that only one of the two has a compile error.
 */
export interface KeySchema {
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  /** One or two sentences for the operator. */
  readonly description: string;
  /** Absent where the key has no default, hence may stay undefined. */
  readonly default?: unknown;
  /** Whether a change can take effect while the service runs. */
  readonly reload: 'live' | 'restart';
  /** What is accepted, in words; derived from the limits where those say it all. */
  readonly expected?: string;
  /** Never shown or logged; the value may be `file:PATH`, which takes the contents of that file. */
  readonly secret?: true;
  /** A path: a relative one starts at the configuration file, or at the working directory elsewhere. */
  readonly path?: true;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly items?: { readonly type: 'string'; readonly pattern: string } | ItemSchema;
  readonly propertyNames?: { readonly pattern: string };
  readonly additionalProperties?: { readonly type: 'string' };
}

/** What each object of a list holds. */
export interface ItemSchema {
  readonly type: 'object';
  readonly additionalProperties: false;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, ItemField>>;
}

export interface ItemField {
  readonly type: 'string' | 'array' | 'number' | 'integer';
  readonly expected: string;
  /** As in `KeySchema`. */
  readonly secret?: true;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly uniqueItems?: true;
  readonly items?: { readonly type: 'string'; readonly enum: readonly string[] };
}

export interface SectionSchema {
  readonly type: 'object';
  readonly description: string;
  readonly additionalProperties: false;
  readonly properties: Readonly<Record<string, KeySchema | SectionSchema>>;
}

type NodeFor<V> = V extends readonly unknown[]
  ? KeySchema
  : V extends object
    ? string extends keyof V
      ? KeySchema
      : SectionFor<V>
    : KeySchema;

type SectionFor<T> = SectionSchema & { readonly properties: { readonly [K in keyof T]-?: NodeFor<T[K]> } };

/** Longest time in seconds that fits a timer of 31 bits of milliseconds. */
const MAX_SECONDS = 2_147_483;

const seconds = { type: 'integer', minimum: 1, maximum: MAX_SECONDS } as const;
const text = { type: 'string', minLength: 1 } as const;
const file = { ...text, path: true } as const;
const secret = {
  type: 'string',
  pattern: '^(file:.+|[\\x21-\\x7e]+)$',
  expected: 'printable ASCII without blanks, or file:PATH',
  secret: true,
} as const;

/** A rate that is no bound any more. */
const MAX_REQUESTS = 1_000_000;
const requestsPerSecond = { type: 'number', minimum: 0, maximum: MAX_REQUESTS } as const;
const burst = { type: 'integer', minimum: 1, maximum: MAX_REQUESTS } as const;

function section<const P extends SectionSchema['properties']>(description: string, properties: P) {
  return { type: 'object', description, additionalProperties: false, properties } as const;
}

export const CONFIG_SCHEMA = section('The configuration of Serai.', {
  server: section('Where the service listens.', {
    host: {
      ...text,
      default: '127.0.0.1',
      reload: 'restart',
      description:
        'Address to listen on. Without a token only a loopback address is accepted, unless `auth.allowAnonymous` is set.',
    },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65_535,
      default: 7200,
      reload: 'restart',
      description: 'Port to listen on; 0 takes a free one.',
    },
    tls: section('Encryption of the API. The files are read again when they change.', {
      certificate: {
        ...file,
        reload: 'restart',
        description:
          'PEM file of the server’s certificate, with those that sign it behind it. With it the server speaks TLS only.',
      },
      key: {
        ...file,
        reload: 'restart',
        description: 'PEM file of the certificate’s key, without a passphrase.',
      },
    }),
    publicUrl: {
      type: 'string',
      pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
      expected: 'an http:// or https:// address without a query',
      reload: 'restart',
      description:
        'Where clients reach the service, for the addresses of WebSockets; a path before `/api/v1` is kept. Without it that is the address of the request, as far as `server.trustedProxies` tell.',
    },
    trustedProxies: {
      type: 'array',
      items: { type: 'string', pattern: '^[0-9A-Fa-f.:]+(/[0-9]+)?$' },
      expected: 'a list of addresses and networks, such as 10.0.0.0/8',
      default: [],
      reload: 'restart',
      description:
        'Proxies whose `X-Forwarded-Proto` and `X-Forwarded-Host`, or else `Forwarded`, tell the address that the client used. From others these headers mean nothing.',
    },
    maxBodyBytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 2 ** 30,
      default: 64 * 1024 * 1024,
      reload: 'restart',
      description: 'Largest request body; a larger one is answered with 413 before it is parsed.',
    },
    maxFileBytes: {
      type: 'integer',
      minimum: 0,
      maximum: 2 ** 30,
      default: 2 ** 30,
      reload: 'restart',
      description:
        'Largest file that is copied into a runner; a larger one is answered with 413, and nothing is copied. In the body it takes a third more.',
    },
    maxSpoolBytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 2 ** 40,
      default: 2 ** 30,
      reload: 'restart',
      description:
        'Room for bodies with files, which are kept in the folder for temporary files (`TMPDIR`) while they are used, in sum. Further ones wait for up to 30 s, then they are answered with 429. At least `server.maxBodyBytes`.',
    },
  }),
  auth: section('Who may use the API.', {
    token: {
      ...secret,
      reload: 'restart',
      description:
        'A token with every scope, named `default` in the log. Requests carry it in the header `Poseidon-Token` or `Authorization: Bearer`.',
    },
    tokens: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'token', 'scopes'],
        properties: {
          name: {
            type: 'string',
            pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$',
            expected: 'a name of up to 63 letters, digits, dots, dashes and underscores',
          },
          token: secret,
          scopes: {
            type: 'array',
            minItems: 1,
            uniqueItems: true,
            items: { type: 'string', enum: SCOPES },
            expected: `a list of ${SCOPES.join(', ')}`,
          },
          requestsPerSecond: {
            ...requestsPerSecond,
            expected: `a number from 0 to ${MAX_REQUESTS}, instead of auth.rateLimit.requestsPerSecond`,
          },
          burst: {
            ...burst,
            expected: `an integer from 1 to ${MAX_REQUESTS}, instead of auth.rateLimit.burst`,
          },
        },
      },
      expected: 'a list of objects with name, token and scopes',
      secret: true,
      default: [],
      reload: 'restart',
      description:
        'Tokens with scopes: `runners` (claim, execute, files), `environments` (read and write them), `control` (operators’ verbs), `read` (statistics). See [security](security.md#scopes).',
    },
    allowAnonymous: {
      type: 'boolean',
      default: false,
      reload: 'restart',
      description:
        'Serve requests without a token on any address. Whoever reaches the port may run programs.',
    },
    rateLimit: section(
      'How often a token may be used; beyond that requests are answered with 429 and `Retry-After`. Each replica counts for itself.',
      {
        requestsPerSecond: {
          ...requestsPerSecond,
          default: 0,
          reload: 'restart',
          description:
            'Requests and WebSockets of one token in a second, on average; 0 means any number. Without tokens all requests count together.',
        },
        burst: {
          ...burst,
          reload: 'restart',
          description:
            'Requests that may come at once after a while without any. Without it as many as come in one second.',
        },
      },
    ),
  }),
  nomad: section('The connection to Nomad. The variables of Nomad’s own command line hold here too.', {
    addresses: {
      type: 'array',
      minItems: 1,
      items: { type: 'string', pattern: '^https?://[^\\s/]+\\S*$' },
      expected: 'a list of http:// or https:// addresses',
      default: ['http://127.0.0.1:4646'],
      reload: 'restart',
      description: 'Base addresses of Nomad servers or agents; the next is tried when one fails.',
    },
    token: { ...secret, reload: 'restart', description: 'ACL token for Nomad.' },
    namespace: { ...text, reload: 'restart', description: 'Namespace of the jobs.' },
    region: { ...text, reload: 'restart', description: 'Region that requests are for.' },
    caCert: {
      ...file,
      reload: 'restart',
      description: 'PEM file of the authority that signs Nomad’s certificate.',
    },
    clientCert: { ...file, reload: 'restart', description: 'PEM file of the client certificate (mTLS).' },
    clientKey: { ...file, reload: 'restart', description: 'PEM file of the key of the client certificate.' },
    tlsServerName: {
      ...text,
      reload: 'restart',
      description: 'Name to expect in Nomad’s certificate, such as `server.global.nomad`.',
    },
    skipVerify: {
      type: 'boolean',
      default: false,
      reload: 'restart',
      description: 'Accept any certificate of Nomad. For experiments only.',
    },
    maxConnections: {
      type: 'integer',
      minimum: 2,
      maximum: 10_000,
      default: 90,
      reload: 'restart',
      description:
        'Requests, the event stream and exec upgrades in progress at once. Nomad answers 429 beyond 100 per client address.',
    },
    requestTimeout: {
      ...seconds,
      default: 10,
      reload: 'restart',
      description: 'Time limit of a request to Nomad.',
    },
    heartbeatTimeout: {
      ...seconds,
      default: 75,
      reload: 'restart',
      description: 'Silence after which the event stream counts as dead. Nomad sends a heartbeat every 30 s.',
    },
    network: section('Networks of runners.', {
      mode: {
        ...text,
        default: 'host',
        reload: 'restart',
        description:
          'Network mode of the group of environments with network access, such as `host`, `bridge` or `cni/NAME`.',
      },
    }),
  }),
  pool: section('Idle runners.', {
    alertThreshold: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.5,
      reload: 'live',
      description: '`GET /health` answers 503 while the idle share of a pool is under this.',
    },
    startTimeout: {
      ...seconds,
      default: 300,
      reload: 'live',
      description: 'Age at which a runner that still has not started is replaced.',
    },
    reconcileInterval: {
      ...seconds,
      default: 300,
      reload: 'live',
      description: 'How often everything known is compared with a fresh listing of Nomad.',
    },
  }),
  runner: section('Inside a runner.', {
    user: {
      type: 'string',
      pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*$',
      expected: 'the name or number of a user',
      default: 'user',
      reload: 'live',
      description: 'Unprivileged user of commands where the image has it; else `nobody`.',
    },
  }),
  runners: section('Claimed runners.', {
    maxLifetime: {
      type: 'integer',
      minimum: 0,
      maximum: MAX_SECONDS,
      default: 86_400,
      reload: 'live',
      description: 'Longest time that a runner stays claimed; 0 means no limit.',
    },
  }),
  execution: section('Commands.', {
    environment: {
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
      additionalProperties: { type: 'string' },
      expected: 'variable names with text values',
      default: { CODEOCEAN: 'true' },
      reload: 'live',
      description: 'Environment variables that every command gets; those of a request win.',
    },
    interactiveStderr: {
      type: 'boolean',
      default: true,
      reload: 'live',
      description: 'Keep stderr apart from stdout for commands that run with a terminal.',
    },
    maxPerRunner: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 4,
      reload: 'live',
      description: 'Executions of one runner at once; more are answered with 429.',
    },
    outputLimit: {
      type: 'integer',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 0,
      reload: 'live',
      description:
        'Most bytes of output, both streams together, of a command whose request has no `outputLimit`; 0 means no limit.',
    },
    maxCommandBytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 2 ** 27,
      default: 1024 * 1024,
      reload: 'live',
      description: 'Largest command; a larger one is answered with 413.',
    },
    maxPrepared: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000,
      default: 1000,
      reload: 'restart',
      description:
        'Prepared executions of all runners that wait for their WebSockets; more are answered with 429. Their requests may take 256 MiB together.',
    },
    preparedTimeout: {
      ...seconds,
      default: 60,
      reload: 'live',
      description: 'How long a prepared execution waits for its WebSocket.',
    },
  }),
  api: section('What answers look like.', {
    peerStatuses: {
      type: 'boolean',
      default: false,
      reload: 'live',
      description:
        'Answer 500 where Poseidon does: 409 and 429 become 500 `NOMAD_OVERLOAD`, 503 becomes 500 `NOMAD_UNREACHABLE`. `/health` keeps its 503.',
    },
  }),
  templates: section('Files that new environments are made from.', {
    job: {
      ...file,
      reload: 'restart',
      description: 'Base job, JSON or HCL; without it the one that comes with the package.',
    },
    environments: {
      ...file,
      reload: 'restart',
      description: 'Folder of environments in YAML; without it the one that comes with the package.',
    },
  }),
  log: section('Logs, on standard error.', {
    level: {
      type: 'string',
      enum: ['error', 'warn', 'info', 'debug'],
      default: 'info',
      reload: 'live',
      description: 'Least severe level that is written.',
    },
    format: {
      type: 'string',
      enum: ['json', 'text'],
      default: 'json',
      reload: 'restart',
      description: '`json` writes one object a line, `text` one readable line.',
    },
  }),
  shutdown: section('The end of the service.', {
    graceSeconds: {
      type: 'integer',
      minimum: 0,
      maximum: MAX_SECONDS,
      default: 30,
      reload: 'live',
      description:
        'How long running executions may go on after SIGTERM or SIGINT. A second signal ends them at once.',
    },
  }),
}) satisfies SectionFor<Config>;
