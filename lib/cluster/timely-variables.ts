import { deadline } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { NomadVariables } from '../nomad/api.js';
import { REQUEST_MS } from './times.js';

/**
 * Variables with a time limit that fits heartbeats: that of other requests to Nomad may be longer than a replica can be
 * silent. NOMAD_UNREACHABLE at the limit.
 */
export function timelyVariables(variables: NomadVariables, clock: Clock): NomadVariables {
  async function within<T>(
    what: string,
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const sentence = `Nomad did not answer in time about ${what} (${REQUEST_MS / 1000} s)`;
    using limit = deadline(clock, REQUEST_MS, 'NOMAD_UNREACHABLE', sentence);
    return await call(AbortSignal.any([limit.signal, ...(signal ? [signal] : [])]));
  }
  return {
    list: (prefix, signal) => within(prefix, signal, (each) => variables.list(prefix, each)),
    get: (path, signal) => within(path, signal, (each) => variables.get(path, each)),
    put: (path, items, options = {}) =>
      within(path, options.signal, (signal) => variables.put(path, items, { ...options, signal })),
    remove: (path, options = {}) =>
      within(path, options.signal, (signal) => variables.remove(path, { ...options, signal })),
  };
}
