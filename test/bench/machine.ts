import { cpus, loadavg, release, totalmem, type } from 'node:os';

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  /** Of the minute before the start. */
  readonly loadAverage: number;
}

export function thisMachine(): Machine {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model.trim() || 'unknown processor',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: `${type()} ${release()}`,
    node: process.versions.node,
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

export function describeMachine({ cpu, cores, memoryGib, kernel, node, loadAverage }: Machine): string {
  return `${cores} × ${cpu}, ${memoryGib} GiB, ${kernel}, Node.js ${node}, load average ${loadAverage} at the start`;
}

/** How busy the machine is now, for figures that suffer from it. */
export function describeLoad(): string {
  return `load average ${loadavg()
    .map((each) => each.toFixed(1))
    .join(' ')}`;
}

/** Processor time that all programs of the machine have used, in milliseconds. */
export function machineCpuMs(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
}
