import { CLUSTER_SCHEMA } from './cluster-schema.js';
import type { Config } from './config.js';
import type { KeySchema, SectionSchema } from './key-schema.js';
import { file, MAX_SECONDS, secret, seconds, section, text } from './key-schema.js';
import { AUTH_SCHEMA, SERVER_SCHEMA } from './server-schema.js';

/**
 * The one schema of the configuration: what every key may hold, its default, and what it is for. `load.ts` validates
 * each source with it, and docs/configuration.md is written from it (document.ts).
 *
 * The type `SectionFor<Config>` makes a key that only one of the two has a compile error.
 */
type NodeFor<V> = V extends readonly unknown[]
  ? KeySchema
  : V extends object
    ? string extends keyof V
      ? KeySchema
      : SectionFor<V>
    : KeySchema;

type SectionFor<T> = SectionSchema & { readonly properties: { readonly [K in keyof T]-?: NodeFor<T[K]> } };

export const CONFIG_SCHEMA = section('The configuration of Serai.', {
  server: SERVER_SCHEMA,
  auth: AUTH_SCHEMA,
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
    orphanTimeout: {
      ...seconds,
      default: 600,
      reload: 'live',
      description:
        'How long a claimed runner is kept whose service is dead and for which no request comes, where several services share a Nomad.',
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
    warm: {
      type: 'string',
      enum: ['on', 'off'],
      default: 'on',
      reload: 'restart',
      description:
        'Keep sessions open in runners ahead of their commands, which saves the time that Nomad takes to open an exec. `off` opens each when it is asked for.',
    },
    warmParallel: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 4,
      reload: 'restart',
      description: 'Sessions that are opened ahead at once. A node opens about 20 execs a second.',
    },
    maxSessions: {
      type: 'integer',
      minimum: 0,
      maximum: 100_000,
      default: 600,
      reload: 'restart',
      description:
        'Sessions that are kept open ahead, at most two for each runner; the runners that wait longest come first, the others open theirs when they are asked for.',
    },
  }),
  cluster: CLUSTER_SCHEMA,
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
