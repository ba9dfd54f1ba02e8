import type { ReplicaId } from '../../lib/base/ids.js';
import { replicaId } from '../../lib/base/ids.js';
import type { Cluster, Replica } from '../../lib/cluster/api.js';

/** Replicas in memory; a test says who lives. */
export class FakeCluster implements Cluster {
  readonly self: ReplicaId;
  readonly isShared = true;
  leads = true;
  isFenced = false;
  isInformed = true;
  trouble: string | undefined;
  readonly suspected: ReplicaId[] = [];
  readonly displaced: ReplicaId[] = [];
  readonly #living = new Map<ReplicaId, Replica>();
  readonly #listeners = new Set<() => void>();

  constructor(self: string) {
    this.self = replicaId(self);
    this.add(self, 'http://127.0.0.1:1');
  }

  /** How many listen to changes. */
  get listeners(): number {
    return this.#listeners.size;
  }

  add(id: string, address: string): Replica {
    const replica = { id: replicaId(id), address };
    this.#living.set(replica.id, replica);
    this.#tell();
    return replica;
  }

  remove(id: ReplicaId): void {
    this.#living.delete(id);
    this.#tell();
  }

  living(): readonly Replica[] {
    return [...this.#living.values()];
  }

  find(id: ReplicaId): Replica | undefined {
    return this.#living.get(id);
  }

  /** Who has started and was not heard of yet. */
  readonly newcomers = new Map<ReplicaId, Replica>();

  seek(id: ReplicaId): Promise<Replica | undefined> {
    const newcomer = this.newcomers.get(id);
    if (newcomer) this.add(id, newcomer.address);
    return Promise.resolve(this.find(id));
  }

  /** By the last digit of the name, so that a test can tell. */
  assignee(name: string): ReplicaId {
    const living = this.living().map(({ id }) => id);
    return living.sort()[parseInt(name.slice(-1), 16) % living.length] ?? this.self;
  }

  /** Changes what it knows besides who lives, and tells of it. */
  become(change: Partial<Pick<FakeCluster, 'leads' | 'isFenced' | 'isInformed'>>): void {
    Object.assign(this, change);
    this.#tell();
  }

  suspect(id: ReplicaId): void {
    this.suspected.push(id);
    this.remove(id);
  }

  moved(id: ReplicaId): void {
    this.displaced.push(id);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
