import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.js';
import type { ReplicaId } from '../../base/ids.js';
import type { Cluster } from '../../cluster/api.js';

export interface OwnerWatchOptions {
  readonly cluster: Cluster;
  readonly owner: ReplicaId;
  readonly clock: Clock;
  /** How long an owner that counts as dead may be silent. */
  readonly silenceMs: number;
  /** The connection to it; undefined as long as there is none, or nothing is to be expected on it. */
  readonly connection: () => Socket | undefined;
  /** Called once: the owner counts as dead, and says nothing. */
  readonly onDead: () => void;
}

/**
 * Watches the owner at the other end of a connection. A process that is frozen, or a machine that is unplugged, leaves
 * connections as they are; only the cluster can tell. One that counts as dead and goes on to send is no dead one: it may
 * be about to stop, and takes no new connections. Returns the function that ends the watch.
 */
export function watchOwner(options: OwnerWatchOptions): () => void {
  const { cluster, owner, clock, silenceMs, connection, onDead } = options;
  let timer: Timer | undefined;
  const bytes = (): number => connection()?.bytesRead ?? 0;
  const look = (): void => {
    if (cluster.find(owner)) {
      timer?.cancel();
      timer = undefined;
    } else if (!timer) listen();
  };
  const listen = (): void => {
    const before = bytes();
    timer = clock.setTimer(silenceMs, () => {
      if (bytes() > before) listen();
      else {
        stop();
        onDead();
      }
    });
  };
  const unsubscribe = cluster.onChange(look);
  const stop = (): void => {
    unsubscribe();
    timer?.cancel();
  };
  look(); // it may have died before it is watched
  return stop;
}
