/**
 * Bodies of the HTTP API (Poseidon API 0.2.2). Shapes only; schemas are in api/schemas.
 */
export const API_BASE = '/api/v1';
export const TOKEN_HEADER = 'poseidon-token';

export interface EnvironmentBody {
  /** May be repeated from the path; clients send it. */
  readonly id?: number;
  readonly image: string;
  readonly prewarmingPoolSize: number;
  readonly cpuLimit: number;
  readonly memoryLimit: number;
  readonly networkAccess: boolean;
  readonly exposedPorts: readonly number[] | null;
  readonly name?: string;
  readonly user?: string;
  readonly environment?: Readonly<Record<string, string>> | null;
}

/** An environment in an answer. */
export interface EnvironmentAnswer extends EnvironmentBody {
  readonly id: number;
  readonly exposedPorts: readonly number[];
}

export interface EnvironmentListAnswer {
  readonly executionEnvironments: readonly EnvironmentAnswer[];
}

export interface ClaimBody {
  readonly executionEnvironmentId: number;
  /** Seconds; 0 means none. */
  readonly inactivityTimeout?: number;
}

export interface ClaimAnswer {
  readonly runnerId: string;
  readonly mappedPorts: readonly MappedPortAnswer[];
}

export interface MappedPortAnswer {
  readonly exposedPort: number;
  /** `address:port`; an IPv6 address is in brackets. */
  readonly hostAddress: string;
}

export interface ExecuteBody {
  readonly command: string;
  readonly privilegedExecution?: boolean;
  readonly environment?: Readonly<Record<string, string>> | null;
  /** Seconds; 0 means none. */
  readonly timeLimit?: number;
  /** Most bytes of output, both streams together; 0 means any number. Without it `execution.outputLimit` of the service holds. */
  readonly outputLimit?: number;
  /** False runs without a TTY and keeps bytes exact. */
  readonly interactive?: boolean;
  readonly workingDirectory?: string;
}

export interface ExecuteAnswer {
  readonly websocketUrl: string;
}

/** Query of the socket of an execution. */
export interface SocketQuery {
  readonly executionID: string;
}

export interface EnvironmentStatistics {
  readonly id: number;
  readonly prewarmingPoolSize: number;
  readonly idleRunners: number;
  readonly usedRunners: number;
  readonly pendingRunners: number;
  readonly failedRunners: number;
  readonly state: 'ready' | 'filling' | 'unhealthy';
  /** Why the pool is not full; absent where it is. */
  readonly reason?: string;
}

/** By the id of the environment. */
export type StatisticsAnswer = Readonly<Record<string, EnvironmentStatistics>>;

export interface ErrorAnswer {
  readonly message: string;
  readonly errorCode?: string;
}
