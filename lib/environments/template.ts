/**
 * Environment value ↔ template job `template-<id>` in Nomad.
 *
 * The job has two groups: `default-group` (count 1, the task that runners copy; a batch job without an allocation would
 * be collected, and the environment with it) and `config` (count 0), whose meta holds what is no property of a task:
 * the pool size, `used`, and under the key `serai` what other tools do not know. Meta lives in a group of count 0
 * because changing it leaves the allocations of the job alone.
 *
 * A template without the key `serai` was written by another tool of the same layout and is read as well. A job that
 * cannot be understood is told as `unreadable`, with the reason, and is otherwise left alone.
 */
import type { EnvironmentId } from '../base/ids.js';
import { environmentId } from '../base/ids.js';
import type { Meta, WireJob, WireNetwork, WireTask, WireTaskGroup } from '../nomad/wire.js';
import type { BaseJob } from './base-job.js';
import { CONFIG_GROUP, DEFAULT_GROUP, DEFAULT_TASK, defaultTaskOf, groupOf } from './base-job.js';
import type { Environment } from './environment.js';
import { createEnvironment } from './environment.js';

/** Job-level meta: hash of everything that makes a runner. Set when a job is registered, readable in job lists. */
export const SPEC_META = 'serai_spec';
/** Key of the config group's meta that marks our own jobs. */
export const SERAI_META = 'serai';
export const USED_META = 'used';
export const POOL_SIZE_META = 'prewarmingPoolSize';
/** In the config group's meta of a template whose environment is being deleted, by whichever replica. */
export const DELETING_META = 'serai_deleting';
/** Jobs of templates are listed by this prefix. */
export const TEMPLATE_PREFIX = 'template-';

const TEMPLATE_ID = /^template-(0|[1-9][0-9]{0,15})$/;

/** What a template job says. */
export type ParsedTemplate =
  | {
      readonly kind: 'environment';
      readonly environment: Environment;
      /** Written by another tool: its jobs carry no hash. */
      readonly foreign: boolean;
    }
  | { readonly kind: 'unreadable'; readonly reason: string };

export function templateJobId(id: EnvironmentId): string {
  return `${TEMPLATE_PREFIX}${id}`;
}

/** The environment whose template job this is by its id, or undefined for any other job. */
export function parseTemplateJobId(jobId: string): EnvironmentId | undefined {
  const number = Number(TEMPLATE_ID.exec(jobId)?.[1]);
  return Number.isSafeInteger(number) ? environmentId(number) : undefined;
}

/** The template job of an environment, over the operator's base job. `networkMode` is used where it has network access. */
export function createTemplateJob(environment: Environment, base: BaseJob, networkMode: string): WireJob {
  const job = structuredClone(base.document);
  job.ID = templateJobId(environment.id);
  job.Name = job.ID;
  job.Meta = { ...job.Meta, [SPEC_META]: environment.specHash };
  job.TaskGroups = (job.TaskGroups ?? []).map((group) =>
    group.Name === CONFIG_GROUP
      ? { ...group, Count: 0, Meta: { ...group.Meta, ...configMeta(environment) } }
      : { ...group, Count: 1, ...runnerGroup(group, environment, networkMode) },
  );
  return job;
}

function configMeta(environment: Environment): Meta {
  const { name, user } = environment;
  const serai = {
    v: 1,
    ...(name === undefined ? {} : { name }),
    ...(user === undefined ? {} : { user }),
    environment: environment.environment,
  };
  return {
    [USED_META]: 'false',
    [POOL_SIZE_META]: String(environment.prewarmingPoolSize),
    [SERAI_META]: JSON.stringify(serai),
  };
}

function runnerGroup(
  group: WireTaskGroup,
  environment: Environment,
  networkMode: string,
): Partial<WireTaskGroup> {
  const { networkAccess, exposedPorts } = environment;
  const network: WireNetwork = {
    Mode: networkMode,
    DynamicPorts: exposedPorts.map((port) => ({ Label: portLabel(port), To: port })),
  };
  return {
    Networks: networkAccess ? [network] : [],
    Tasks: (group.Tasks ?? []).map((task) =>
      task.Name === DEFAULT_TASK ? runnerTask(task, environment, networkMode) : task,
    ),
  };
}

function runnerTask(task: WireTask, environment: Environment, networkMode: string): WireTask {
  const { image, cpuLimit, memoryLimit, networkAccess, exposedPorts } = environment;
  const config = { ...task.Config };
  delete config.network_mode;
  delete config.ports;
  const reservation = task.Resources?.MemoryMB ?? memoryLimit;
  // In the host's network Docker publishes only the ports that its own configuration names.
  const publishes =
    networkAccess && networkMode === 'host' && task.Driver === 'docker' && exposedPorts.length > 0;
  return {
    ...task,
    Config: {
      ...config,
      image,
      ...(networkAccess ? {} : { network_mode: 'none' }),
      ...(publishes ? { ports: exposedPorts.map(portLabel) } : {}),
    },
    Resources: {
      ...task.Resources,
      CPU: cpuLimit,
      MemoryMB: Math.min(memoryLimit, reservation),
      MemoryMaxMB: memoryLimit,
    },
  };
}

function portLabel(port: number): string {
  return `port-${port}`;
}

/** Reads a template job, ours or another tool's. Never throws. */
export function parseTemplateJob(job: WireJob): ParsedTemplate {
  const id = parseTemplateJobId(job.ID);
  const group = groupOf(job, DEFAULT_GROUP);
  const task = defaultTaskOf(job);
  const meta = groupOf(job, CONFIG_GROUP)?.Meta;
  if (id === undefined) return unreadable(`"${job.ID}" is no id of a template`);
  if (!group || !task) return unreadable(`there is no task "${DEFAULT_TASK}" in a group "${DEFAULT_GROUP}"`);
  if (!meta) return unreadable(`there is no group "${CONFIG_GROUP}" with meta`);
  const image = task.Config?.image;
  if (typeof image !== 'string' || image === '') return unreadable(`"${DEFAULT_TASK}" has no image`);
  const prewarmingPoolSize = parseSize(meta[POOL_SIZE_META]);
  if (prewarmingPoolSize === undefined) return unreadable(`${POOL_SIZE_META} is no number of runners`);
  const own = parseOwnMeta(meta[SERAI_META]);
  if (own === undefined) return unreadable(`the meta "${SERAI_META}" is not of a known version`);
  const resources = task.Resources ?? {};
  const ports = (group.Networks ?? []).flatMap((network) => network.DynamicPorts ?? []);
  const environment = createEnvironment({
    id,
    image,
    prewarmingPoolSize,
    cpuLimit: resources.CPU ?? 0,
    memoryLimit: resources.MemoryMaxMB || (resources.MemoryMB ?? 0),
    networkAccess: task.Config?.network_mode !== 'none',
    exposedPorts: ports.flatMap((port) => port.To ?? []).filter((port) => port > 0),
    name: own.name,
    user: own.user,
    environment: own.environment,
  });
  return { kind: 'environment', environment, foreign: meta[SERAI_META] === undefined };
}

interface OwnMeta {
  readonly name: string | undefined;
  readonly user: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

/** Undefined for a text that is not ours to understand; a missing one says nothing, which is fine. */
function parseOwnMeta(text: string | undefined): OwnMeta | undefined {
  if (text === undefined) return { name: undefined, user: undefined, environment: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // told as unreadable by the caller
  }
  if (!isRecord(value) || value.v !== 1) return undefined;
  const { name, user, environment = {} } = value;
  if (!isOptionalText(name) || !isOptionalText(user) || !isTexts(environment)) return undefined;
  return { name, user, environment };
}

function parseSize(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function isTexts(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((entry) => typeof entry === 'string');
}

function unreadable(reason: string): ParsedTemplate {
  return { kind: 'unreadable', reason };
}
