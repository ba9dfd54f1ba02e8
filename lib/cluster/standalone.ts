import type { ReplicaId } from '../base/ids.js';
import type { Cluster, Replica } from './api.js';

/** A service that is alone on its Nomad: it leads, and nothing ever changes. */
export class Standalone implements Cluster {
  readonly isShared = false;
  readonly leads = true;
  readonly isFenced = false;
  readonly isInformed = true;
  readonly trouble = undefined;
  readonly #replica: Replica;

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  get self(): ReplicaId {
    return this.#replica.id;
  }

  living(): readonly Replica[] {
    return [this.#replica];
  }

  find(id: ReplicaId): Replica | undefined {
    return id === this.#replica.id ? this.#replica : undefined;
  }

  seek(id: ReplicaId): Promise<Replica | undefined> {
    return Promise.resolve(this.find(id));
  }

  assignee(): ReplicaId {
    return this.#replica.id;
  }

  suspect(): void {
    // Nobody else is there.
  }

  moved(): void {
    // Nobody else is there.
  }

  onChange(): () => void {
    return () => undefined;
  }
}
