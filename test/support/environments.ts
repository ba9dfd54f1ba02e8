import { environmentId } from '../../lib/base/ids.js';
import type { BaseJob } from '../../lib/environments/base-job.js';
import { createBaseJob } from '../../lib/environments/base-job.js';
import type { Environment, EnvironmentFields } from '../../lib/environments/environment.js';
import { createEnvironment } from '../../lib/environments/environment.js';
import { readFileSync } from 'node:fs';
import { packagedBaseJob } from '../../lib/environments/base-job.js';

/** An environment with everything of no interest filled in. */
export function anEnvironment({
  id = 7,
  ...fields
}: Partial<Omit<EnvironmentFields, 'id'>> & { id?: number } = {}): Environment {
  return createEnvironment({
    id: environmentId(id),
    image: 'python:3.13-slim',
    prewarmingPoolSize: 2,
    cpuLimit: 100,
    memoryLimit: 256,
    networkAccess: false,
    exposedPorts: [],
    name: 'Python',
    user: undefined,
    environment: {},
    ...fields,
  });
}

/** The base job of the package. */
export function theBaseJob(): BaseJob {
  return createBaseJob('templates/job.json', JSON.parse(readFileSync(packagedBaseJob, 'utf8')));
}
