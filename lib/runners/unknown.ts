import { ServiceError } from '../base/errors.js';
import type { EnvironmentId } from '../base/ids.js';

/** The error for an id of a runner that nobody has, whether or not there ever was one. */
export function unknownRunner(id: string): ServiceError {
  return new ServiceError('RUNNER_GONE', `runner ${id} is not in use: it is gone, or never was`, {
    details: { runnerId: id },
  });
}

export function unknownEnvironment(id: EnvironmentId): ServiceError {
  return new ServiceError('ENVIRONMENT_NOT_FOUND', `there is no environment ${id}`, {
    details: { environmentId: id },
  });
}
