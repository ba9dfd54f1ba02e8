import type { ReplicaId } from '../base/ids.js';
import { replicaId } from '../base/ids.js';

/** Where replicas keep in Nomad's Variables what they tell each other. */
export const PREFIX = 'serai/';
/** The lease of who leads: lease.ts. */
export const LEASE_PATH = `${PREFIX}lease`;
const REPLICAS = `${PREFIX}replicas/`;

/** The variable of a replica: registration.ts. */
export function replicaPath(id: ReplicaId): string {
  return REPLICAS + id;
}

/** The replica whose variable this is, or undefined for every other path. */
export function replicaOf(path: string): ReplicaId | undefined {
  const id = path.startsWith(REPLICAS) ? path.slice(REPLICAS.length) : '';
  return /^[a-z0-9_]{1,40}$/.test(id) ? replicaId(id) : undefined;
}
