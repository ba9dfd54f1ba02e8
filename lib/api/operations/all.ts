import { deleteEnvironment, getEnvironment, listEnvironments, putEnvironment } from './environments.js';
import { listFiles, readFile, updateFiles } from './files.js';
import type { Operation } from './operation.js';
import { claimRunner, openSession, openSocket, prepareExecution, returnRunner } from './runners.js';
import { getDocs, getHealth, getOpenApi, getStatistics, getVersion } from './service.js';

/** All operations of the API, in the order in which they are described. */
export const OPERATIONS: readonly Operation[] = [
  getHealth,
  getVersion,
  getStatistics,
  getOpenApi,
  getDocs,
  listEnvironments,
  getEnvironment,
  putEnvironment,
  deleteEnvironment,
  claimRunner,
  returnRunner,
  prepareExecution,
  openSocket,
  openSession,
  updateFiles,
  listFiles,
  readFile,
];
