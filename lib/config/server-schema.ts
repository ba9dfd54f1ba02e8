import { SCOPES } from '../base/scopes.js';
import { file, secret, section, text } from './key-schema.js';

/** The parts of the configuration's schema on where the service listens, and who may use it. */

/** A rate that is no bound any more. */
const MAX_REQUESTS = 1_000_000;
const requestsPerSecond = { type: 'number', minimum: 0, maximum: MAX_REQUESTS } as const;
const burst = { type: 'integer', minimum: 1, maximum: MAX_REQUESTS } as const;

export const SERVER_SCHEMA = section('Where the service listens.', {
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
});

export const AUTH_SCHEMA = section('Who may use the API.', {
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
    description: 'Serve requests without a token on any address. Whoever reaches the port may run programs.',
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
});
