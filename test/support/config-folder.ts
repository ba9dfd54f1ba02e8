import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ServiceError } from '../../lib/base/errors.js';
import type { ConfigSources, LoadedConfig } from '../../lib/config/load.js';
import { loadConfig } from '../../lib/config/load.js';

/** A folder with files of a configuration, which is loaded from there. */
export class ConfigFolder implements Disposable {
  readonly path = mkdtempSync(path.join(os.tmpdir(), 'serai-config-'));

  /** Writes a file and returns where it is. */
  file(text: string, name = 'serai.yaml'): string {
    const at = path.join(this.path, name);
    writeFileSync(at, text);
    return at;
  }

  load(sources: Partial<ConfigSources> = {}): LoadedConfig {
    return loadConfig({ env: {}, cwd: this.path, ...sources });
  }

  /** The lines that name the faults of a configuration that is refused. */
  faultsOf(sources: Partial<ConfigSources>): string[] {
    try {
      this.load(sources);
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'INVALID_CONFIG')) throw error;
      return error.message
        .split('\n')
        .slice(1)
        .map((line) => line.trim());
    }
    throw new Error('the configuration was accepted');
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}
