import type { TaskDriver } from './driver.js';
import { ProcessDriver } from './process/process-driver.js';

export type DriverName = 'process';

/** A driver by its name. It does nothing before it is asked to. */
export function createDriver(name: DriverName): TaskDriver {
  switch (name) {
    case 'process':
      return new ProcessDriver();
  }
}
