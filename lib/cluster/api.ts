import type { ReplicaId } from '../base/ids.js';

/** A service on the same Nomad, as the others know it. */
export interface Replica {
  readonly id: ReplicaId;
  /** Where the others reach its API, such as `http://10.0.0.7:7200`. */
  readonly address: string;
}

/**
 * Who shares this Nomad. All answers are what this replica knows now, from memory, but for `seek`.
 */
export interface Cluster {
  readonly self: ReplicaId;
  /** False for a service that is alone on its Nomad by configuration: whatever it finds there is its own. */
  readonly isShared: boolean;
  /**
   * True while this replica may fill pools, replace what does not start and keep templates: while it holds the lease and
   * has raised it within the last 15 s. To be asked at each use, since time alone ends it.
   */
  readonly leads: boolean;
  /**
   * True once another process goes by the name of this one: it owns nothing any more, must let go of all that it owned
   * without purging it, and serves nobody. It stays so until the end of the process.
   */
  readonly isFenced: boolean;
  /**
   * False until the others were looked at for the first time: a replica that is not found then may well live, so nothing
   * is taken over from it.
   */
  readonly isInformed: boolean;
  /** What keeps this one from taking part, in words for the operator; undefined where nothing does. */
  readonly trouble: string | undefined;
  /** Those whose heartbeat goes on, this one included unless Nomad refuses its own, in order of id. */
  living(): readonly Replica[];
  /** Undefined for one that is not known to live. */
  find(id: ReplicaId): Replica | undefined;
  /**
   * As `find`, for who is about to take it for dead: one that is not known to live is looked for in Nomad first, since it
   * may have started a moment ago. Rejects where Nomad fails, or with the reason of `signal`.
   */
  seek(id: ReplicaId, signal: AbortSignal): Promise<Replica | undefined>;
  /** Which of the living is to prepare a thing of this name; the same answer on all that see the same living ones. */
  assignee(name: string): ReplicaId;
  /** A connection to it was refused: it counts as dead until its next heartbeat, or that of a new process. */
  suspect(id: ReplicaId): void;
  /** Its name is another process's now, which may be elsewhere: its address is read again at the next look. */
  moved(id: ReplicaId): void;
  /** Calls back after each change of `leads`, `living`, `isFenced` or `isInformed`. Returns the unsubscribe function. */
  onChange(listener: () => void): () => void;
}
