import type { TaskOptions } from '../driver.js';
import { NODE_ADDRESS } from '../state/render.js';
import { seenMeta } from '../state/job-changes.js';
import type { Allocation, Task, TaskGroup } from '../state/records.js';

/** Where a task finds its folders. */
export interface TaskFolders {
  readonly alloc: string;
  readonly task: string;
  readonly secrets: string;
}

/** The environment that Nomad gives a task, with the variables of the job over it. */
export function taskEnvironment(
  allocation: Allocation,
  group: TaskGroup,
  task: Task,
  folders: TaskFolders,
): Record<string, string> {
  const { CPU, MemoryMB, MemoryMaxMB } = task.Resources;
  const environment: Record<string, string> = {
    NOMAD_ALLOC_DIR: folders.alloc,
    NOMAD_TASK_DIR: folders.task,
    NOMAD_SECRETS_DIR: folders.secrets,
    NOMAD_ALLOC_ID: allocation.ID,
    NOMAD_SHORT_ALLOC_ID: allocation.ID.slice(0, 8),
    NOMAD_ALLOC_NAME: allocation.Name,
    NOMAD_ALLOC_INDEX: /\[(\d+)\]$/.exec(allocation.Name)?.[1] ?? '0',
    NOMAD_TASK_NAME: task.Name,
    NOMAD_GROUP_NAME: group.Name,
    NOMAD_JOB_ID: allocation.JobID,
    NOMAD_JOB_NAME: allocation.Job.Name,
    NOMAD_NAMESPACE: allocation.Namespace,
    NOMAD_REGION: 'global',
    NOMAD_DC: 'dc1',
    NOMAD_CPU_LIMIT: String(CPU),
    NOMAD_MEMORY_LIMIT: String(MemoryMB),
    ...(MemoryMaxMB > 0 ? { NOMAD_MEMORY_MAX_LIMIT: String(MemoryMaxMB) } : {}),
  };
  for (const [key, value] of Object.entries(seenMeta(allocation.Job, group, task))) {
    environment[`NOMAD_META_${variableName(key)}`] = value;
    environment[`NOMAD_META_${variableName(key).toUpperCase()}`] = value;
  }
  for (const { Label, To, Value } of allocation.Ports.flat()) {
    const label = variableName(Label);
    environment[`NOMAD_IP_${label}`] = NODE_ADDRESS;
    environment[`NOMAD_PORT_${label}`] = String(To > 0 ? To : Value);
    environment[`NOMAD_ADDR_${label}`] = `${NODE_ADDRESS}:${Value}`;
    environment[`NOMAD_HOST_IP_${label}`] = NODE_ADDRESS;
    environment[`NOMAD_HOST_PORT_${label}`] = String(Value);
    environment[`NOMAD_HOST_ADDR_${label}`] = `${NODE_ADDRESS}:${Value}`;
  }
  return { ...environment, ...task.Env };
}

function variableName(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/g, '_');
}

/** The main command of a task; undefined where the job names none, since the agent has no images with one of their own. */
export function taskCommand(task: Task): TaskOptions['command'] | undefined {
  const { command, args } = task.Config ?? {};
  if (typeof command !== 'string' || command === '') return undefined;
  const words: readonly unknown[] = Array.isArray(args) ? args : [];
  return [command, ...words.map(String)];
}

/** False where the job cuts its task off the network. */
export function hasNetwork(task: Task): boolean {
  return task.Config?.['network_mode'] !== 'none';
}
