import { hostname } from 'node:os';
import type { Randomness, ReplicaId } from '../base/ids.js';
import { replicaId } from '../base/ids.js';

/** The name of a service that was given none: the same after a restart, and another for every service on the machine. */
export function replicaName(port: number, randomness: Randomness): ReplicaId {
  const host = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '_')
    .slice(0, 34);
  // A free port is another one each time, and two services may have taken one.
  return replicaId(`${host}_${port === 0 ? randomness.uuid().slice(0, 5) : port}`);
}
