import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { TaskDriver } from './driver.js';
import { ProcessDriver } from './process/process-driver.js';
import { SandboxDriver } from './sandbox/sandbox-driver.js';
import { SimulatedDriver } from './simulated/simulated-driver.js';

/** Best first. */
export const DRIVER_NAMES = ['sandbox', 'process', 'simulated'] as const;
export type DriverName = (typeof DRIVER_NAMES)[number];

export interface DriverDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

/** A driver by its name. It does nothing before it is asked to. */
export function createDriver(name: DriverName, { clock, log }: DriverDeps): TaskDriver {
  switch (name) {
    case 'sandbox':
      return new SandboxDriver({ log });
    case 'process':
      return new ProcessDriver();
    case 'simulated':
      return new SimulatedDriver({ clock });
  }
}

/** A driver, and what people should know about the choice. */
export interface ChosenDriver {
  readonly driver: TaskDriver;
  readonly remarks: readonly string[];
}

const NO_ISOLATION =
  'the process driver does not isolate: tasks run as ordinary processes of this machine and can read and change its files';

/**
 * The driver that was asked for, or else the best one that this machine can run. Rejects, with a sentence for people,
 * where it can run none of them.
 */
export async function chooseDriver(asked: DriverName | undefined, deps: DriverDeps): Promise<ChosenDriver> {
  const candidates = asked === undefined ? DRIVER_NAMES.filter((name) => name !== 'simulated') : [asked];
  const remarks: string[] = [];
  for (const name of candidates) {
    const driver = createDriver(name, deps);
    try {
      await driver.check();
      if (name === 'process') remarks.push(NO_ISOLATION);
      return { driver, remarks };
    } catch (error) {
      await driver.stop();
      remarks.push(`the ${name} driver cannot run here: ${messageOf(error)}`);
    }
  }
  throw new Error(remarks.join('; '));
}
