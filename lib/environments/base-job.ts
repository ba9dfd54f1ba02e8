import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ServiceError, messageOf } from '../base/errors.js';
import type { NomadJobs } from '../nomad/api.js';
import type { WireJob, WireTask, WireTaskGroup } from '../nomad/wire.js';

/**
 * The base job: the document that every template job is made from. The operator may replace the one of the package,
 * so it is checked once, here, and trusted afterwards.
 *
 * JSON as Nomad's HTTP API takes it (with or without the outer `Job`), or HCL, which the Nomad server parses.
 */
export interface BaseJob {
  /** The checked document, deeply frozen: a template is a changed copy of it. */
  readonly document: WireJob;
}

export const DEFAULT_GROUP = 'default-group';
export const DEFAULT_TASK = 'default-task';
export const CONFIG_GROUP = 'config';

/** The base job that ships with the package. */
export const packagedBaseJob = fileURLToPath(new URL('../../templates/job.json', import.meta.url));

/**
 * Reads and checks a base job. Rejects with INVALID_CONFIG, naming the file and what is wrong with it, or with a Nomad
 * failure where HCL could not be sent to be parsed.
 */
export async function loadBaseJob(
  file: string,
  jobs: Pick<NomadJobs, 'parse'>,
  signal?: AbortSignal,
): Promise<BaseJob> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw invalid(file, messageOf(error), error);
  }
  return createBaseJob(file, isJson(text) ? parseJson(file, text) : await jobs.parse(text, signal));
}

/** Checks a base job document; `source` names it in errors. */
export function createBaseJob(source: string, document: unknown): BaseJob {
  const job = isObject(document) && isObject(document.Job) ? document.Job : document;
  assertBaseJob(source, job);
  return Object.freeze({ document: deepFreeze(structuredClone(job)) });
}

/** The group of this name in a job that may be anybody's. */
export function groupOf(job: WireJob, name: string): WireTaskGroup | undefined {
  return job.TaskGroups?.find((group) => group.Name === name);
}

/** The runner's own task in a job that may be anybody's. */
export function defaultTaskOf(job: WireJob): WireTask | undefined {
  return groupOf(job, DEFAULT_GROUP)?.Tasks?.find((task) => task.Name === DEFAULT_TASK);
}

function assertBaseJob(source: string, job: unknown): asserts job is WireJob {
  if (!isObject(job)) throw invalid(source, 'is no job document');
  if (job.Type !== 'batch') throw invalid(source, 'Type must be "batch"');
  if (!Array.isArray(job.TaskGroups) || !job.TaskGroups.every(isNamed)) {
    throw invalid(source, 'TaskGroups must be a list of named groups');
  }
  const groups: readonly Record<string, unknown>[] = job.TaskGroups;
  const main = groups.find((group) => group.Name === DEFAULT_GROUP);
  const config = groups.find((group) => group.Name === CONFIG_GROUP);
  if (groups.length !== 2 || !main || !config) {
    throw invalid(source, `TaskGroups must be "${DEFAULT_GROUP}" and "${CONFIG_GROUP}"`);
  }
  // HCL that leaves the count out means 1.
  if ((main.Count ?? 1) !== 1) throw invalid(source, `Count of "${DEFAULT_GROUP}" must be 1`);
  if (config.Count !== 0) throw invalid(source, `Count of "${CONFIG_GROUP}" must be 0`);
  assertTasks(source, DEFAULT_GROUP, main.Tasks, DEFAULT_TASK);
  assertTasks(source, CONFIG_GROUP, config.Tasks, undefined);
}

function assertTasks(source: string, group: string, tasks: unknown, wanted: string | undefined): void {
  if (!Array.isArray(tasks) || tasks.length === 0 || !tasks.every(isNamed)) {
    throw invalid(source, `"${group}" must have a task`);
  }
  const list: readonly Record<string, unknown>[] = tasks;
  if (list.some((task) => typeof task.Driver !== 'string')) {
    throw invalid(source, `every task of "${group}" needs a Driver`);
  }
  if (wanted !== undefined && !list.some((task) => task.Name === wanted)) {
    throw invalid(source, `"${group}" must have the task "${wanted}"`);
  }
}

/** HCL cannot begin with a brace. */
function isJson(text: string): boolean {
  return text.trimStart().startsWith('{');
}

function parseJson(source: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(source, messageOf(error), error);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNamed(value: unknown): value is Record<string, unknown> {
  return isObject(value) && typeof value.Name === 'string';
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

function invalid(source: string, what: string, cause?: unknown): ServiceError {
  return new ServiceError('INVALID_CONFIG', `the base job ${source}: ${what}`, { cause });
}
