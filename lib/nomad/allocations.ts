import { allocationId } from '../base/ids.js';
import type { AllocationId } from '../base/ids.js';
import type { AllocationListOptions, NomadAllocations } from './api.js';
import { decodeList, Fields, oneOf } from './decode.js';
import type { Http } from './http.js';
import type { Allocation, ClientStatus, DesiredStatus, MappedPort, TaskEvent, TaskState } from './model.js';

/** `/v1/allocations` and `/v1/allocation`. */
export class Allocations implements NomadAllocations {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list({ filter, details = false, signal }: AllocationListOptions = {}): Promise<Allocation[]> {
    // Nomad answers task states unless told not to.
    const query = { filter, task_states: String(details), resources: details ? 'true' : undefined };
    return this.#http.list({ method: 'GET', path: '/v1/allocations', query, signal }, (body) =>
      decodeList(body, 'the list of allocations', decodeAllocation),
    );
  }

  async get(id: AllocationId, signal?: AbortSignal): Promise<Allocation | undefined> {
    const path = `/v1/allocation/${encodeURIComponent(id)}`;
    const answer = await this.#http.find({ method: 'GET', path, signal }, 'alloc not found');
    return answer && decodeAllocation(answer.body);
  }
}

const CLIENT_STATUSES: readonly ClientStatus[] = [
  'pending',
  'running',
  'complete',
  'failed',
  'lost',
  'unknown',
];
const DESIRED_STATUSES: readonly DesiredStatus[] = ['run', 'stop', 'evict'];
const TASK_STATES: readonly TaskState['state'][] = ['pending', 'running', 'dead'];

/** One allocation, from the event stream, a list or a look-up; what the source leaves out becomes undefined. */
export function decodeAllocation(value: unknown): Allocation {
  const allocation = new Fields(value, 'an allocation');
  const resources = allocation.child('AllocatedResources');
  return {
    id: allocationId(allocation.text('ID')),
    jobId: allocation.text('JobID'),
    nodeId: allocation.textOrEmpty('NodeID'),
    clientStatus: oneOf(allocation.text('ClientStatus'), CLIENT_STATUSES, 'unknown'),
    // A wish that this client does not know is not the wish to run.
    desiredStatus: oneOf(allocation.text('DesiredStatus'), DESIRED_STATUSES, 'stop'),
    description: ['ClientDescription', 'DesiredDescription']
      .map((name) => allocation.textOrEmpty(name))
      .filter((text) => text !== '')
      .join('; '),
    createIndex: allocation.number('CreateIndex'),
    modifyIndex: allocation.number('ModifyIndex'),
    previousAllocation: idIfAny(allocation, 'PreviousAllocation'),
    nextAllocation: idIfAny(allocation, 'NextAllocation'),
    tasks: decodeTasks(allocation),
    ports: resources && (resources.child('Shared')?.list('Ports') ?? []).map(decodePort),
  };
}

function idIfAny(allocation: Fields, name: string): AllocationId | undefined {
  const id = allocation.textIfAny(name);
  return id === undefined ? undefined : allocationId(id);
}

function decodeTasks(allocation: Fields): Record<string, TaskState> | undefined {
  const states = allocation.children('TaskStates') ?? [];
  if (states.length === 0) return undefined;
  return Object.fromEntries(states.map(([task, state]) => [task, decodeTaskState(state)]));
}

function decodeTaskState(state: Fields): TaskState {
  return {
    state: oneOf(state.text('State'), TASK_STATES, 'pending'),
    failed: state.flagOrFalse('Failed'),
    restarts: state.numberOrZero('Restarts'),
    startedAt: state.textIfAny('StartedAt'),
    lastRestart: state.textIfAny('LastRestart'),
    events: state.list('Events').map(decodeTaskEvent),
  };
}

function decodeTaskEvent(event: Fields): TaskEvent {
  const type = event.text('Type');
  const terminated = type === 'Terminated';
  return {
    type,
    message: event.textOrEmpty('DisplayMessage'),
    exitCode: terminated ? event.numberOrZero('ExitCode') : undefined,
    oomKilled: terminated && event.texts('Details')?.['oom_killed'] === 'true',
  };
}

function decodePort(port: Fields): MappedPort {
  const hostPort = port.number('Value');
  const to = port.numberOrZero('To');
  return {
    label: port.text('Label'),
    // No `To` means the same port on both sides.
    exposedPort: to > 0 ? to : hostPort,
    hostIp: port.textOrEmpty('HostIP'),
    hostPort,
  };
}
