import { Fields } from '../fields.js';
import { HttpFailure } from '../failure.js';
import type {
  Job,
  JobType,
  Network,
  ReschedulePolicy,
  Resources,
  RestartPolicy,
  Task,
  TaskGroup,
} from './records.js';

/**
 * A job as it was sent → the job as Nomad keeps it: validated, with every default filled in and unknown fields dropped.
 *
 * The agent runs what the service registers: batch and service jobs. Anything else is refused in words.
 */
const SECOND = 1e9;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const RESTART_DEFAULTS: Readonly<Record<JobType, RestartPolicy>> = {
  batch: { Attempts: 3, Delay: 15 * SECOND, Interval: 24 * HOUR, Mode: 'fail', RenderTemplates: false },
  service: { Attempts: 2, Delay: 15 * SECOND, Interval: 30 * MINUTE, Mode: 'fail', RenderTemplates: false },
};

const RESCHEDULE_DEFAULTS: Readonly<Record<JobType, ReschedulePolicy>> = {
  batch: {
    Attempts: 1,
    Delay: 5 * SECOND,
    DelayFunction: 'constant',
    Interval: 24 * HOUR,
    MaxDelay: 0,
    Unlimited: false,
  },
  service: {
    Attempts: 0,
    Delay: 30 * SECOND,
    DelayFunction: 'exponential',
    Interval: 0,
    MaxDelay: HOUR,
    Unlimited: true,
  },
};

/** Reads the `Job` of a register call. Throws what Nomad answers to a job that it does not take. */
export function canonicalJob(value: unknown, namespace: string): Job {
  const fields = Fields.of(value, 'Job');
  const type = fields.string('Type', 'service');
  const problems = findProblems(fields, type);
  if (problems.length > 0) throw multiError(problems);
  const id = fields.string('ID', '');
  const jobType: JobType = type === 'batch' ? 'batch' : 'service';
  return {
    ...fields.copy(['Affinities', 'Constraints', 'Multiregion', 'ParameterizedJob', 'Periodic', 'Spreads']),
    AllAtOnce: fields.boolean('AllAtOnce', false),
    ConsulNamespace: '',
    ConsulToken: '',
    CreateIndex: 0,
    Datacenters: fields.strings('Datacenters', ['*']),
    DispatchIdempotencyToken: '',
    Dispatched: false,
    ID: id,
    JobModifyIndex: 0,
    Meta: fields.stringMap('Meta'),
    ModifyIndex: 0,
    Name: fields.string('Name', id) || id,
    Namespace: namespace,
    NodePool: fields.string('NodePool', 'default') || 'default',
    NomadTokenID: '',
    ParentID: '',
    Payload: null,
    Priority: fields.integer('Priority', 50) || 50,
    Region: fields.string('Region', 'global') || 'global',
    Stable: false,
    Status: 'pending',
    StatusDescription: '',
    Stop: false,
    SubmitTime: 0,
    TaskGroups: fields.objects('TaskGroups').map((group) => canonicalGroup(group, jobType)),
    Type: jobType,
    Update: {
      AutoPromote: false,
      AutoRevert: false,
      Canary: 0,
      HealthCheck: '',
      HealthyDeadline: 0,
      MaxParallel: 0,
      MinHealthyTime: 0,
      ProgressDeadline: 0,
      Stagger: 0,
    },
    VaultNamespace: '',
    VaultToken: '',
    Version: 0,
  };
}

function findProblems(job: Fields, type: string): string[] {
  const problems: string[] = [];
  if (!['batch', 'service'].includes(type)) {
    problems.push(
      `Invalid job type: ${JSON.stringify(type)} (the embedded agent runs batch and service jobs)`,
    );
  }
  for (const field of ['ParameterizedJob', 'Periodic', 'Multiregion']) {
    if (job.has(field)) problems.push(`The embedded agent runs no jobs with ${field}`);
  }
  const groups = job.objects('TaskGroups');
  if (groups.length === 0) problems.push('Missing job task groups');
  const names = new Map<string, number>();
  groups.forEach((group, at) => {
    const name = group.string('Name', '');
    const first = names.get(name);
    if (name === '') problems.push(`Job task group ${at + 1} missing name`);
    else if (first !== undefined) {
      problems.push(`Job task group ${at + 1} redefines '${name}' from group ${first + 1}`);
    } else names.set(name, at);
    problems.push(...findGroupProblems(group, name));
  });
  return problems;
}

function findGroupProblems(group: Fields, name: string): string[] {
  const problems: string[] = [];
  const tasks = group.objects('Tasks');
  if (group.integer('Count', 1) < 0) problems.push("Task group count can't be negative");
  if (tasks.length === 0) problems.push('Missing tasks for task group');
  for (const task of tasks) {
    if (task.string('Name', '') === '') problems.push('Missing task name');
    if (task.string('Driver', '') === '') {
      problems.push(`Task ${task.string('Name', '')} validation failed: Missing task driver`);
    }
  }
  return problems.map((problem) => `Task group ${name} validation failed: ${problem}`);
}

/** Several complaints in the form that Go's multierror gives them. */
export function multiError(problems: readonly string[]): HttpFailure {
  const count = problems.length === 1 ? '1 error' : `${problems.length} errors`;
  return new HttpFailure(
    500,
    `${count} occurred:\n${problems.map((problem) => `\t* ${problem}\n`).join('')}\n`,
  );
}

function canonicalGroup(group: Fields, type: JobType): TaskGroup {
  const restart = canonicalRestart(group.object('RestartPolicy'), RESTART_DEFAULTS[type]);
  const disk = group.object('EphemeralDisk');
  return {
    ...group.copy([
      'Affinities',
      'Constraints',
      'Migrate',
      'Scaling',
      'Services',
      'ShutdownDelay',
      'Spreads',
    ]),
    ...group.copy(['MaxClientDisconnect', 'StopAfterClientDisconnect', 'Update', 'Volumes']),
    Consul: { Namespace: '' },
    Count: group.integer('Count', 1),
    EphemeralDisk: {
      Migrate: disk.boolean('Migrate', false),
      SizeMB: disk.integer('SizeMB', 300),
      Sticky: disk.boolean('Sticky', false),
    },
    Meta: group.stringMap('Meta'),
    Name: group.string('Name', ''),
    Networks: group.has('Networks') ? group.objects('Networks').map(canonicalNetwork) : null,
    ReschedulePolicy: canonicalReschedule(group.object('ReschedulePolicy'), RESCHEDULE_DEFAULTS[type]),
    RestartPolicy: restart,
    Tasks: group.objects('Tasks').map((task) => canonicalTask(task, restart)),
  };
}

function canonicalRestart(policy: Fields, defaults: RestartPolicy): RestartPolicy {
  return {
    Attempts: policy.integer('Attempts', defaults.Attempts),
    Delay: policy.duration('Delay', defaults.Delay),
    Interval: policy.duration('Interval', defaults.Interval),
    Mode: policy.string('Mode', defaults.Mode) === 'delay' ? 'delay' : 'fail',
    RenderTemplates: policy.boolean('RenderTemplates', false),
  };
}

function canonicalReschedule(policy: Fields, defaults: ReschedulePolicy): ReschedulePolicy {
  return {
    Attempts: policy.integer('Attempts', defaults.Attempts),
    Delay: policy.duration('Delay', defaults.Delay),
    DelayFunction: policy.string('DelayFunction', defaults.DelayFunction) || defaults.DelayFunction,
    Interval: policy.duration('Interval', defaults.Interval),
    MaxDelay: policy.duration('MaxDelay', defaults.MaxDelay),
    Unlimited: policy.boolean('Unlimited', defaults.Unlimited),
  };
}

function canonicalNetwork(network: Fields): Network {
  const ports = network.objects('DynamicPorts').map((port) => ({
    HostNetwork: port.string('HostNetwork', 'default') || 'default',
    Label: port.string('Label', ''),
    To: port.integer('To', 0),
    Value: 0,
  }));
  return {
    CIDR: '',
    DNS: network.raw('DNS'),
    Device: '',
    DynamicPorts: ports.length > 0 ? ports : null,
    IP: '',
    MBits: 0,
    Mode: network.string('Mode', 'host') || 'host',
    ReservedPorts: network.raw('ReservedPorts'),
  };
}

function canonicalTask(task: Fields, restart: RestartPolicy): Task {
  const logs = task.object('LogConfig');
  return {
    ...task.copy([
      'Affinities',
      'Artifacts',
      'CSIPluginConfig',
      'Constraints',
      'DispatchPayload',
      'Identity',
    ]),
    ...task.copy(['Lifecycle', 'ScalingPolicies', 'Services', 'Templates', 'Vault', 'VolumeMounts']),
    Config: task.anyMap('Config'),
    Driver: task.string('Driver', ''),
    Env: task.stringMap('Env'),
    KillSignal: task.string('KillSignal', ''),
    KillTimeout: task.duration('KillTimeout', 5 * SECOND),
    Kind: task.string('Kind', ''),
    Leader: task.boolean('Leader', false),
    LogConfig: {
      Disabled: logs.boolean('Disabled', false),
      MaxFileSizeMB: logs.integer('MaxFileSizeMB', 10),
      MaxFiles: logs.integer('MaxFiles', 10),
    },
    Meta: task.stringMap('Meta'),
    Name: task.string('Name', ''),
    Resources: canonicalResources(task.object('Resources')),
    RestartPolicy: task.has('RestartPolicy')
      ? canonicalRestart(task.object('RestartPolicy'), restart)
      : restart,
    ShutdownDelay: task.duration('ShutdownDelay', 0),
    User: task.string('User', ''),
  };
}

function canonicalResources(resources: Fields): Resources {
  return {
    CPU: resources.integer('CPU', 100),
    Cores: resources.integer('Cores', 0),
    Devices: resources.raw('Devices'),
    DiskMB: resources.integer('DiskMB', 0),
    IOPS: 0,
    MemoryMB: resources.integer('MemoryMB', 300),
    MemoryMaxMB: resources.integer('MemoryMaxMB', 0),
    Networks: null,
  };
}
