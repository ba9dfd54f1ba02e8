import { section } from './key-schema.js';

/** The part of the configuration's schema on other services on the same Nomad. */
export const CLUSTER_SCHEMA = section(
  'The place of this service among others on the same Nomad: see [replicas](replicas.md).',
  {
    replica: {
      type: 'string',
      pattern: '^[a-z0-9_]{1,40}$',
      expected: 'up to 40 of a-z, 0-9 and _',
      reload: 'restart',
      description:
        'Name of this service, the same after a restart and no other’s: by it a restarted service knows its runners and what it had open in them. Without it, host name and port; with port 0 another one at each start.',
    },
    secret: {
      type: 'string',
      pattern: '^(file:.+|[\\x21-\\x7e]{16,})$',
      expected: 'at least 16 characters of printable ASCII without blanks, or file:PATH',
      secret: true,
      reload: 'restart',
      description:
        'Makes the service one of several on its Nomad, all with the same secret: by it they know each other when they pass requests on. Without it the service takes every runner there for its own.',
    },
    address: {
      type: 'string',
      pattern: '^https?://[^\\s/?#@]+/*$',
      expected: 'an http:// or https:// address without a path',
      reload: 'restart',
      description:
        'Where the other services reach this one, such as `http://10.0.0.7:7200`. Without it, where the service listens, which has to be one address and not all of them.',
    },
  },
);
