import type { Randomness } from '../../base/ids.js';
import type { Job, Node, PlacementMetrics, Port, TaskGroup } from '../state/records.js';
import { PLACED, resources } from '../state/metrics.js';
import type { NodeUsage } from '../state/usage.js';

/** What the one node offers. */
export interface Capacity {
  readonly cpuMhz: number;
  readonly memoryMb: number;
}

export interface PlacementDeps {
  readonly capacity: Capacity;
  /** Whether the node runs tasks that name this driver. */
  readonly acceptsDriver: (driver: string) => boolean;
  readonly randomness: Randomness;
}

/** Host ports by group network, or why the group cannot be placed. */
export type Placement =
  | { readonly placed: true; readonly ports: readonly (readonly Port[])[] }
  | { readonly placed: false; readonly metrics: PlacementMetrics };

/** Nomad's range of dynamic ports. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

/** Finds room for one allocation of a group. Takes nothing: the room is used once the allocation is stored. */
export function place(
  group: TaskGroup,
  job: Job,
  node: Node,
  usage: NodeUsage,
  { capacity, acceptsDriver, randomness }: PlacementDeps,
): Placement {
  const isInDatacenter = job.Datacenters.some((name) => name === '*' || name === 'dc1');
  if (node.SchedulingEligibility !== 'eligible' || !isInDatacenter) {
    return fail({ NodesAvailable: {}, NodesEvaluated: 0, NodesInPool: 0 });
  }
  if (!group.Tasks.every((task) => acceptsDriver(task.Driver))) {
    return fail({ ConstraintFiltered: { 'missing drivers': 1 }, NodesFiltered: 1 });
  }
  const cpu = group.Tasks.reduce((sum, task) => sum + task.Resources.CPU, 0);
  const memory = group.Tasks.reduce((sum, task) => sum + task.Resources.MemoryMB, 0);
  if (usage.cpuMhz + cpu > capacity.cpuMhz) return exhausted('cpu', group);
  if (usage.memoryMb + memory > capacity.memoryMb) return exhausted('memory', group);
  const ports = choosePorts(group, usage, randomness);
  return ports ? { placed: true, ports } : exhausted('network: dynamic port selection failed', group);
}

function fail(metrics: Partial<PlacementMetrics>): Placement {
  return { placed: false, metrics: { ...PLACED, ...metrics } };
}

function exhausted(dimension: string, group: TaskGroup): Placement {
  const none = { DiskMB: 0, Networks: null };
  const wanted = group.Tasks.map(({ Name, Resources: { CPU, MemoryMB } }) => [
    Name,
    resources(dimension === 'cpu' ? { ...none, CPU } : dimension === 'memory' ? { ...none, MemoryMB } : none),
  ]);
  return fail({
    DimensionExhausted: { [dimension]: 1 },
    NodesExhausted: 1,
    ResourcesExhausted: Object.fromEntries(wanted),
  });
}

function choosePorts(group: TaskGroup, usage: NodeUsage, randomness: Randomness): Port[][] | undefined {
  const chosen = new Set<number>();
  const size = LAST_PORT - FIRST_PORT + 1;
  const next = (): number | undefined => {
    const start = Math.floor(randomness.random() * size);
    for (let step = 0; step < size; step += 1) {
      const port = FIRST_PORT + ((start + step) % size);
      if (usage.isPortTaken(port) || chosen.has(port)) continue;
      chosen.add(port);
      return port;
    }
    return undefined;
  };
  const networks: Port[][] = [];
  for (const network of group.Networks ?? []) {
    const ports: Port[] = [];
    for (const wanted of network.DynamicPorts ?? []) {
      const value = next();
      if (value === undefined) return undefined;
      ports.push({ ...wanted, Value: value });
    }
    networks.push(ports);
  }
  return networks;
}
