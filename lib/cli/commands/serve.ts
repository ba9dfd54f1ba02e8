import { createLogger } from '../../base/log.js';
import { packageVersion } from '../../config/version.js';
import { loadConfig } from '../../config/load.js';
import { createService } from '../../service.js';
import type { FlagSpecs } from '../flags.js';
import { CONFIG_FLAGS, configFlags, parseFlags } from '../flags.js';
import type { CliIo } from '../io.js';
import { onSignals } from '../signals.js';

export const SERVE_FLAGS = CONFIG_FLAGS satisfies FlagSpecs;

/** The service in production: runs until a signal, drains, and is over. */
export async function serve(args: readonly string[], io: CliIo): Promise<number> {
  const given = parseFlags(SERVE_FLAGS, args);
  const file = given.get('config')?.[0];
  const { config, warnings } = loadConfig({
    ...(file === undefined ? {} : { file }),
    env: io.env,
    cwd: io.cwd,
    flags: configFlags(given),
  });
  const log = createLogger(config.log);
  for (const warning of warnings) log.warn(warning);
  const service = createService(config, { log });
  const { signalled, stopListening } = onSignals(io.signals, () => void service.destroy());
  try {
    await service.start();
    log.info('serving', { version: packageVersion(), url: service.url });
    await signalled;
    log.info('stopping', { graceSeconds: config.shutdown.graceSeconds });
    return 0;
  } finally {
    await service.stop();
    stopListening();
    log.info('stopped');
  }
}
