import type { LogFormat, LogLevel } from '../base/log.js';
import type { Scope } from '../base/scopes.js';

/**
 * The whole configuration, as `load.ts` returns it: validated, with defaults, frozen. Handed down in slices.
 *
 * Times are seconds unless the key's name says otherwise. The schema with descriptions and defaults is schema.ts.
 */
export interface Config {
  readonly server: ServerConfig;
  readonly auth: AuthConfig;
  readonly nomad: NomadConfig;
  readonly pool: PoolConfig;
  readonly runner: RunnerConfig;
  readonly runners: RunnersConfig;
  readonly execution: ExecutionConfig;
  readonly cluster: ClusterConfig;
  readonly api: { readonly peerStatuses: boolean };
  readonly templates: TemplatesConfig;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  readonly shutdown: { readonly graceSeconds: number };
}

export interface ServerConfig {
  /** Default 127.0.0.1. */
  readonly host: string;
  /** Default 7200; 0 takes a free one. */
  readonly port: number;
  /** Paths of PEM files; both or neither. With them the server speaks TLS only. */
  readonly tls: { readonly certificate: string | undefined; readonly key: string | undefined };
  /** Where clients reach the service, if not as they do; http:// or https://. */
  readonly publicUrl: string | undefined;
  /** Addresses and networks whose word on the client's address is believed. Default none. */
  readonly trustedProxies: readonly string[];
  /** Default 64 MiB. */
  readonly maxBodyBytes: number;
  /** Of each file that is copied into a runner. Default 1 GiB. */
  readonly maxFileBytes: number;
  /** What bodies with files may take of the disk while they are used, in sum. Default 1 GiB. */
  readonly maxSpoolBytes: number;
}

/** Without any token the server listens on loopback only. */
export interface AuthConfig {
  /** A token with every scope. */
  readonly token: string | undefined;
  readonly tokens: readonly TokenConfig[];
  readonly allowAnonymous: boolean;
  /** Of each token; without tokens, of all requests together. */
  readonly rateLimit: RateLimitConfig;
}

export interface RateLimitConfig {
  /** 0 means any number. Default 0. */
  readonly requestsPerSecond: number;
  /** How many may come at once; undefined means those of one second. */
  readonly burst: number | undefined;
}

export interface TokenConfig {
  /** Stands for the token in logs. */
  readonly name: string;
  readonly token: string;
  readonly scopes: readonly Scope[];
  /** These two instead of those of `rateLimit`. */
  readonly requestsPerSecond?: number;
  readonly burst?: number;
}

export interface NomadConfig {
  /** Base URLs; the next is tried when one fails. Default http://127.0.0.1:4646. */
  readonly addresses: readonly string[];
  readonly token: string | undefined;
  readonly namespace: string | undefined;
  readonly region: string | undefined;
  /** Paths of PEM files. */
  readonly caCert: string | undefined;
  readonly clientCert: string | undefined;
  readonly clientKey: string | undefined;
  readonly tlsServerName: string | undefined;
  readonly skipVerify: boolean;
  /** Requests, the stream and exec upgrades in progress at once. Default 90. */
  readonly maxConnections: number;
  /** Default 10. */
  readonly requestTimeout: number;
  /** Silence after which the event stream counts as dead. Default 75. */
  readonly heartbeatTimeout: number;
  readonly network: { readonly mode: string };
}

export interface PoolConfig {
  /** Idle share under which /health answers 503. Default 0.5. */
  readonly alertThreshold: number;
  /** Age at which a pending runner is replaced. Default 300. */
  readonly startTimeout: number;
  /** How often everything is compared with a fresh listing. Default 300. */
  readonly reconcileInterval: number;
}

export interface RunnerConfig {
  /** Unprivileged user of commands where the image has it, else `nobody`. Default `user`. */
  readonly user: string;
}

export interface RunnersConfig {
  /** Longest claim; 0 means none. Default 86400. */
  readonly maxLifetime: number;
  /** How long a claimed runner of a dead replica is kept for a request. Default 600. */
  readonly orphanTimeout: number;
}

export interface ExecutionConfig {
  /** Variables that every command gets. Default `CODEOCEAN=true`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Keep stderr apart with a TTY. Default true. */
  readonly interactiveStderr: boolean;
  /** Executions of one runner at once. Default 4. */
  readonly maxPerRunner: number;
  /** Most bytes that a command may print where its request says nothing; 0 means any number. Default 0. */
  readonly outputLimit: number;
  /** Longest command. Default 1 MiB. */
  readonly maxCommandBytes: number;
  /** Executions of all runners that wait for their sockets. Default 1000. */
  readonly maxPrepared: number;
  /** How long a prepared execution waits for its socket. Default 60. */
  readonly preparedTimeout: number;
  /** Whether sessions are opened ahead of their commands. Default on. */
  readonly warm: 'on' | 'off';
  /** Sessions that are opened ahead at once. Default 4. */
  readonly warmParallel: number;
  /** Sessions that are kept open ahead. Default 600. */
  readonly maxSessions: number;
}

/** Without a secret the service is alone on its Nomad. */
export interface ClusterConfig {
  /** Undefined stands for host name and port. */
  readonly replica: string | undefined;
  /** Shared by all the services on one Nomad. */
  readonly secret: string | undefined;
  /** Where the others reach this one; undefined stands for where it listens. */
  readonly address: string | undefined;
}

export interface TemplatesConfig {
  /** JSON (or HCL) base job; undefined takes the one that ships with the package. */
  readonly job: string | undefined;
  /** Folder of YAML environments; undefined takes the one that ships with the package. */
  readonly environments: string | undefined;
}
