import { jobSummary } from './job-status.js';
import { PLACED, resources } from './metrics.js';
import type { Allocation, Evaluation, Job, Network, Node, Resources, TaskGroup } from './records.js';

/**
 * Records as Nomad's HTTP API shows them. Empty fields are left out or written as Nomad does it: an event omits what is
 * empty, a row of a list names every field.
 */
export const NODE_ADDRESS = '127.0.0.1';

function groupOf(allocation: Allocation): TaskGroup | undefined {
  return allocation.Job.TaskGroups.find((group) => group.Name === allocation.TaskGroup);
}

function renderNetworks(group: TaskGroup | undefined, allocation: Allocation): unknown[] | null {
  const networks = group?.Networks ?? [];
  if (networks.length === 0) return null;
  return networks.map((network: Network, at) => ({
    CIDR: '',
    DNS: null,
    Device: '',
    DynamicPorts: allocation.Ports[at] ?? null,
    IP: NODE_ADDRESS,
    MBits: 0,
    Mode: network.Mode,
    ReservedPorts: null,
  }));
}

function renderPorts(allocation: Allocation): unknown[] | null {
  const ports = allocation.Ports.flat();
  if (ports.length === 0) return null;
  return ports.map(({ Label, To, Value }) => ({ Label, To, Value, HostIP: NODE_ADDRESS }));
}

export function renderAllocatedResources(allocation: Allocation): Record<string, unknown> {
  const group = groupOf(allocation);
  const tasks = group?.Tasks ?? [];
  return {
    Shared: {
      DiskMB: group?.EphemeralDisk.SizeMB ?? 0,
      Networks: renderNetworks(group, allocation),
      Ports: renderPorts(allocation),
    },
    TaskLifecycles: Object.fromEntries(tasks.map((task) => [task.Name, null])),
    Tasks: Object.fromEntries(
      tasks.map(({ Name, Resources: { CPU, MemoryMB, MemoryMaxMB } }) => [
        Name,
        {
          Cpu: { CpuShares: CPU, ReservedCores: null },
          Devices: null,
          Memory: { MemoryMB, MemoryMaxMB },
          Networks: null,
        },
      ]),
    ),
  };
}

/** An allocation as its events carry it; `GET /v1/allocation/<id>` adds the job. */
export function renderAllocation(allocation: Allocation): Record<string, unknown> {
  const group = groupOf(allocation);
  const tasks = group?.Tasks ?? [];
  const sum = (of: (task: Resources) => number): number =>
    tasks.reduce((total, task) => total + of(task.Resources), 0);
  const disk = group?.EphemeralDisk.SizeMB ?? 0;
  const networks = renderNetworks(group, allocation);
  return {
    ...identity(allocation),
    AllocModifyIndex: allocation.AllocModifyIndex,
    AllocatedResources: renderAllocatedResources(allocation),
    ...(allocation.ClientDescription === ''
      ? {}
      : {
          ClientDescription: allocation.ClientDescription,
          NetworkStatus: { Address: '', DNS: null, InterfaceName: '' },
        }),
    ...(allocation.DesiredDescription === '' ? {} : { DesiredDescription: allocation.DesiredDescription }),
    ...(allocation.Migrate ? { DesiredTransition: renderTransition(allocation) } : {}),
    Metrics: PLACED,
    ...(allocation.NextAllocation === '' ? {} : { NextAllocation: allocation.NextAllocation }),
    ...(allocation.PreviousAllocation === '' ? {} : { PreviousAllocation: allocation.PreviousAllocation }),
    Resources: resources({
      CPU: sum(({ CPU }) => CPU),
      MemoryMB: sum(({ MemoryMB }) => MemoryMB),
      MemoryMaxMB: sum(({ MemoryMB, MemoryMaxMB }) => Math.max(MemoryMB, MemoryMaxMB)),
      DiskMB: disk,
      Networks: networks,
    }),
    SharedResources: resources({ DiskMB: disk, Networks: networks }),
    TaskResources: Object.fromEntries(tasks.map((task) => [task.Name, task.Resources])),
    ...(allocation.TaskStates ? { TaskStates: allocation.TaskStates } : {}),
  };
}

function identity(allocation: Allocation): Record<string, unknown> {
  return {
    ClientStatus: allocation.ClientStatus,
    CreateIndex: allocation.CreateIndex,
    CreateTime: allocation.CreateTime,
    DesiredStatus: allocation.DesiredStatus,
    EvalID: allocation.EvalID,
    ID: allocation.ID,
    JobID: allocation.JobID,
    ModifyIndex: allocation.ModifyIndex,
    ModifyTime: allocation.ModifyTime,
    Name: allocation.Name,
    Namespace: allocation.Namespace,
    NodeID: allocation.NodeID,
    NodeName: allocation.NodeName,
    TaskGroup: allocation.TaskGroup,
  };
}

function renderTransition({ Migrate }: Allocation): Record<string, unknown> {
  return {
    ForceReschedule: null,
    Migrate: Migrate ? true : null,
    NoShutdownDelay: Migrate ? false : null,
    Reschedule: null,
  };
}

/** A row of an allocation list. */
export function renderAllocationRow(
  allocation: Allocation,
  { taskStates, resources: withResources }: { taskStates: boolean; resources: boolean },
): Record<string, unknown> {
  return {
    ...identity(allocation),
    ...(withResources ? { AllocatedResources: renderAllocatedResources(allocation) } : {}),
    ClientDescription: allocation.ClientDescription,
    DeploymentStatus: null,
    DesiredDescription: allocation.DesiredDescription,
    DesiredTransition: renderTransition(allocation),
    FollowupEvalID: '',
    JobType: allocation.Job.Type,
    JobVersion: allocation.Job.Version,
    NextAllocation: allocation.NextAllocation,
    PreemptedAllocations: null,
    PreemptedByAllocation: '',
    RescheduleTracker: null,
    TaskStates: taskStates ? (allocation.TaskStates ?? null) : null,
  };
}

/** A row of a job list. */
export function renderJobRow(
  job: Job,
  allocations: readonly Allocation[],
  evaluations: readonly Evaluation[],
  { meta }: { meta: boolean },
): Record<string, unknown> {
  return {
    CreateIndex: job.CreateIndex,
    Datacenters: job.Datacenters,
    ID: job.ID,
    JobModifyIndex: job.JobModifyIndex,
    JobSummary: jobSummary(job, allocations, evaluations),
    ...(meta ? { Meta: job.Meta } : {}),
    ModifyIndex: job.ModifyIndex,
    Multiregion: null,
    Name: job.Name,
    Namespace: job.Namespace,
    NodePool: 'default',
    ParameterizedJob: false,
    ParentID: '',
    Periodic: false,
    Priority: job.Priority,
    Status: job.Status,
    StatusDescription: '',
    Stop: job.Stop,
    SubmitTime: job.SubmitTime,
    Type: job.Type,
  };
}

/** A node as its events and `GET /v1/node/<id>` carry it, less the attributes, which are another machine's. */
export function renderNode(node: Node): Record<string, unknown> {
  return {
    Attributes: { 'nomad.version': '1.6.3' },
    CSIControllerPlugins: {},
    CSINodePlugins: {},
    CgroupParent: '',
    ComputedClass: 'v1:1',
    CreateIndex: node.CreateIndex,
    Datacenter: 'dc1',
    Drain: node.DrainStrategy !== null,
    DrainStrategy: node.DrainStrategy,
    HTTPAddr: '',
    HostVolumes: null,
    ID: node.ID,
    LastAllocUpdateIndex: node.LastAllocUpdateIndex,
    LastDrain: node.LastDrain,
    LastMissedHeartbeatIndex: 0,
    Links: {},
    ModifyIndex: node.ModifyIndex,
    Name: node.Name,
    NodeClass: '',
    NodePool: 'default',
    SchedulingEligibility: node.SchedulingEligibility,
    SecretID: '',
    Status: node.Status,
    StatusDescription: '',
    StatusUpdatedAt: node.StatusUpdatedAt,
    TLSEnabled: false,
  };
}

/** A row of the node list. */
export function renderNodeRow(node: Node): Record<string, unknown> {
  return {
    Address: NODE_ADDRESS,
    CreateIndex: node.CreateIndex,
    Datacenter: 'dc1',
    Drain: node.DrainStrategy !== null,
    HostVolumes: null,
    ID: node.ID,
    LastDrain: node.LastDrain,
    ModifyIndex: node.ModifyIndex,
    Name: node.Name,
    NodeClass: '',
    NodePool: 'default',
    SchedulingEligibility: node.SchedulingEligibility,
    Status: node.Status,
    StatusDescription: '',
    Version: '1.6.3',
  };
}
