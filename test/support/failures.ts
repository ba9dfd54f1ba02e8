import type { ServiceError } from '../../lib/base/errors.js';

/** The error that `work` rejects with or throws; throws itself where nothing fails. */
export async function failureOf(work: Promise<unknown> | (() => unknown)): Promise<ServiceError> {
  try {
    await (typeof work === 'function' ? work() : work);
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error('nothing failed');
}
