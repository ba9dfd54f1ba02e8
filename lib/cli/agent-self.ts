/** How the embedded agent runs tasks. */
export type AgentDriver = 'sandbox' | 'process' | 'simulated';

const DRIVERS: readonly string[] = ['sandbox', 'process', 'simulated'] satisfies AgentDriver[];

/**
 * What `GET /v1/agent/self` tells of an embedded agent: its driver. `other` where something else answers, such as a
 * real Nomad; undefined where nothing does.
 */
export async function askAgent(address: string): Promise<AgentDriver | 'other' | undefined> {
  let body: unknown;
  try {
    const response = await fetch(new URL('/v1/agent/self', address));
    body = await response.json();
  } catch {
    return undefined; // nothing listens, or it is no agent that speaks JSON
  }
  const embedded = isRecord(body) && isRecord(body['embedded']) ? body['embedded'] : undefined;
  const driver = embedded?.['driver'];
  return isDriver(driver) ? driver : 'other';
}

function isDriver(value: unknown): value is AgentDriver {
  return typeof value === 'string' && DRIVERS.includes(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
