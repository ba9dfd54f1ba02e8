import type { Allocation, TaskGroup } from './records.js';
import { isTerminal } from './records.js';

/** What allocations that are wanted take of the node: kept up with every change, so that placing stays cheap. */
export class NodeUsage {
  cpuMhz = 0;
  memoryMb = 0;
  readonly #ports = new Set<number>();
  readonly #below: NodeUsage | undefined;

  constructor(below?: NodeUsage) {
    this.#below = below;
    if (!below) return;
    this.cpuMhz = below.cpuMhz;
    this.memoryMb = below.memoryMb;
  }

  isPortTaken(port: number): boolean {
    return this.#ports.has(port) || (this.#below?.isPortTaken(port) ?? false);
  }

  /** Counts the change of one stored allocation. */
  change(before: Allocation | undefined, after: Allocation): void {
    if (before && !isTerminal(before)) this.#give(before);
    if (!isTerminal(after)) this.take(groupOf(after), after.Ports);
  }

  /** Takes room for one allocation of a group. */
  take(group: TaskGroup | undefined, ports: Allocation['Ports']): void {
    this.#add(group, 1);
    for (const { Value } of ports.flat()) this.#ports.add(Value);
  }

  /** What would be taken without these allocations; a copy that can be changed freely. */
  without(stopped: readonly Allocation[]): NodeUsage {
    // A port of a stopped allocation is not given away at once: its process may still hold it.
    const copy = new NodeUsage(this);
    for (const allocation of stopped) {
      if (!isTerminal(allocation)) copy.#add(groupOf(allocation), -1);
    }
    return copy;
  }

  #give(allocation: Allocation): void {
    this.#add(groupOf(allocation), -1);
    for (const { Value } of allocation.Ports.flat()) this.#ports.delete(Value);
  }

  #add(group: TaskGroup | undefined, sign: 1 | -1): void {
    for (const { Resources } of group?.Tasks ?? []) {
      this.cpuMhz += sign * Resources.CPU;
      this.memoryMb += sign * Resources.MemoryMB;
    }
  }
}

function groupOf(allocation: Allocation): TaskGroup | undefined {
  return allocation.Job.TaskGroups.find(({ Name }) => Name === allocation.TaskGroup);
}
