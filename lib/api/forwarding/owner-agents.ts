import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';

/** Connections to one replica, and to all of them; a request beyond that waits, and its time limit goes on. */
const PER_REPLICA = 512;
const TOTAL = 2048;
const IDLE_PER_REPLICA = 32;
/** Shorter than the owner keeps idle connections (server.ts), so that none is closed under a request. */
const IDLE_MS = 30_000;

const OPTIONS = {
  keepAlive: true,
  maxSockets: PER_REPLICA,
  maxTotalSockets: TOTAL,
  maxFreeSockets: IDLE_PER_REPLICA,
  scheduling: 'lifo',
  timeout: IDLE_MS,
} as const;

/** The connections to other replicas, kept for the next request. */
export class OwnerAgents {
  readonly plain = new Agent(OPTIONS);
  readonly encrypted = new TlsAgent(OPTIONS);

  /** Closes all of them, also those in use. */
  destroy(): void {
    this.plain.destroy();
    this.encrypted.destroy();
  }
}
