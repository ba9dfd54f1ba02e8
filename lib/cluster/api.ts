import type { ReplicaId } from '../base/ids.js';

/** A service on the same Nomad, as the others know it. */
export interface Replica {
  readonly id: ReplicaId;
  /** Where the others reach its API, such as `http://10.0.0.7:7200`. */
  readonly address: string;
}

/**
 * Who shares this Nomad. All answers are what this replica knows now, from memory: nothing here waits for Nomad.
 */
export interface Cluster {
  readonly self: ReplicaId;
  /** False for a service that is alone on its Nomad by configuration: whatever it finds there is its own. */
  readonly isShared: boolean;
  /**
   * True while this replica may fill pools, replace what does not start and keep templates: while it holds the lease and
   * has raised it within the last 15 s.
   */
  readonly leads: boolean;
  /** Those whose heartbeat goes on, this one included, in order of id. */
  living(): readonly Replica[];
  /** Undefined for one that is not known to live. */
  find(id: ReplicaId): Replica | undefined;
  /** Which of the living is to prepare a thing of this name; the same answer on all that see the same living ones. */
  assignee(name: string): ReplicaId;
  /** A connection to it was refused: it counts as dead until its next heartbeat. */
  suspect(id: ReplicaId): void;
  /** Calls back after each change of `leads` or `living`. Returns the unsubscribe function. */
  onChange(listener: () => void): () => void;
}
