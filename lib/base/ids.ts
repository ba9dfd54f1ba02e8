import { randomUUID } from 'node:crypto';

/** Ids are branded strings or numbers, so that one kind is not passed for another. */
declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** Number of an environment, as clients choose it: a non-negative integer. */
export type EnvironmentId = Branded<number, 'EnvironmentId'>;
/** `<environment id>-<UUID>`; the name of the runner's Nomad job. */
export type RunnerId = Branded<string, 'RunnerId'>;
/** One prepared or running command of a runner. */
export type ExecutionId = Branded<string, 'ExecutionId'>;
/** Name of one service among those that share a Nomad; the same after its restart. */
export type ReplicaId = Branded<string, 'ReplicaId'>;
/** Nomad's id of an allocation. */
export type AllocationId = Branded<string, 'AllocationId'>;

/** Source of new ids and of jitter; injected, so that tests know what comes. */
export interface Randomness {
  /** A UUID of version 4. */
  uuid(): string;
  /** Uniform in [0, 1). */
  random(): number;
}

export const systemRandomness: Randomness = { uuid: () => randomUUID(), random: () => Math.random() };

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const RUNNER_ID = new RegExp(`^(0|[1-9][0-9]{0,15})-${UUID}$`);
const EXECUTION_OF_REPLICA = new RegExp(`^([a-z0-9_]{1,40})-${UUID}$`);

/** Brands a number that was validated as an environment id. */
export function environmentId(value: number): EnvironmentId {
  return value as EnvironmentId;
}

export function newRunnerId(environment: EnvironmentId, randomness: Randomness): RunnerId {
  return `${environment}-${randomness.uuid()}` as RunnerId;
}

/** The environment that a runner id names, or undefined where `id` is no runner id: `10-…` is not of environment 1. */
export function parseRunnerId(id: string): { runnerId: RunnerId; environmentId: EnvironmentId } | undefined {
  const match = RUNNER_ID.exec(id);
  const number = Number(match?.[1]);
  if (!Number.isSafeInteger(number)) return undefined;
  return { runnerId: id as RunnerId, environmentId: number as EnvironmentId };
}

/** A UUID; with a replica `<replica>-<UUID>`, so that others tell from the id alone who has the execution. */
export function newExecutionId(randomness: Randomness, replica?: ReplicaId): ExecutionId {
  const uuid = randomness.uuid();
  return (replica === undefined ? uuid : `${replica}-${uuid}`) as ExecutionId;
}

/** The replica that an execution's id names; undefined where it names none. */
export function replicaOfExecution(id: string): ReplicaId | undefined {
  const [, name] = EXECUTION_OF_REPLICA.exec(id) ?? [];
  return name as ReplicaId | undefined;
}

/** Brands an id that came from a client's query; whether it exists is looked up, never assumed. */
export function executionId(value: string): ExecutionId {
  return value as ExecutionId;
}

/** Brands the name of a replica: one that was configured, or that Nomad sent. */
export function replicaId(value: string): ReplicaId {
  return value as ReplicaId;
}

/** Brands an allocation id that Nomad sent. */
export function allocationId(value: string): AllocationId {
  return value as AllocationId;
}
