import type { CliIo } from '../io.js';
import { runAgent } from '../../dev-agent/command.js';

/** The embedded agent alone, for a service elsewhere on this machine that has its address in NOMAD_ADDR. */
export function agent(args: readonly string[], io: CliIo): Promise<number> {
  return runAgent(args, io);
}
