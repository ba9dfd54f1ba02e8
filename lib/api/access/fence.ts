import { ServiceError } from '../../base/errors.js';
import type { Cluster } from '../../cluster/api.js';

/** Throws FENCED where another process goes by the name of this service: whatever it knows of runners is that one's now. */
export function assertNotFenced({ isFenced, self }: Cluster): void {
  if (!isFenced) return;
  throw new ServiceError(
    'FENCED',
    `another process goes by the name of this service, ${self}; stop this one, and give each its own cluster.replica`,
  );
}
