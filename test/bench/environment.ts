import { environmentId } from '../../lib/base/ids.js';
import { createEnvironment } from '../../lib/environments/environment.js';

/** Small runners, so that many fit on one machine. */
export const SPECIFICATION = {
  image: 'bench',
  cpuLimit: 20,
  memoryLimit: 64,
  networkAccess: false,
} as const;

export const benchEnvironment = createEnvironment({
  ...SPECIFICATION,
  id: environmentId(0),
  prewarmingPoolSize: 0,
  exposedPorts: [],
  name: undefined,
  user: undefined,
  environment: {},
});
